import assert from 'node:assert/strict';
import { GatewayError } from '../../../core/base/errors';
import { beginSignInAttempt } from '../../../core/sign-in/attempts';
import { DATABASES, type TestDatabase } from '../../support/databases';

for (const { name, open } of DATABASES) {
  describe(`attempts to sign in (${name})`, function () {
    this.timeout(60_000);
    let opened: TestDatabase;
    before(async () => {
      opened = await open();
    });
    after(() => opened.close());
    beforeEach(() => opened.database('sign_in_attempts').delete());

    const begin = (email: string, place: string) => beginSignInAttempt(opened.database, { email, place });
    /** Returns the seconds to wait; 0 if the attempt was accepted. */
    const attempt = async (email: string, place: string): Promise<number> => {
      try {
        await begin(email, place);
        return 0;
      } catch (error) {
        assert.ok(error instanceof GatewayError && error.code === 'SIGN_IN_SLOWED', String(error));
        return error.options.retryAfterSeconds ?? 0;
      }
    };
    const pass = (interval: string) =>
      opened.database('sign_in_attempts').update({
        tried_at: opened.database.raw(`tried_at - interval '${interval}'`),
        next_at: opened.database.raw(`next_at - interval '${interval}'`),
      });

    it('are accepted a few at a time for one e-mail address in any spelling, even if many arrive simultaneously', async () => {
      const emails = Array.from({ length: 20 }, (_, index) =>
        index % 2 === 0 ? 'ann@example.com' : 'ANN@example.com',
      );
      const waits = await Promise.all(emails.map((email, index) => attempt(email, `192.0.2.${index}`)));
      assert.equal(waits.filter((seconds) => seconds === 0).length, 5);
      assert.equal(await attempt('bob@example.com', '192.0.2.1'), 0);
    });

    it('must wait twice as long each time, up to half a minute', async () => {
      const waits: number[] = [];
      for (let tries = 0; tries < 4; tries += 1) await attempt('ann@example.com', `192.0.2.${tries}`);
      for (let tries = 4; tries < 12; tries += 1) {
        assert.equal(await attempt('ann@example.com', `192.0.2.${tries}`), 0);
        waits.push(await attempt('ann@example.com', `198.51.100.${tries}`));
        await pass('30 seconds');
      }
      assert.deepEqual(waits, [1, 2, 4, 8, 16, 30, 30, 30]);
    });

    it('are delayed for a client that tries many addresses, longer than for one address', async () => {
      for (let tries = 0; tries < 20; tries += 1) assert.equal(await attempt(`${tries}@example.com`, '192.0.2.1'), 0);
      assert.ok((await attempt('another@example.com', '192.0.2.1')) > 0);
      assert.equal(await attempt('another@example.com', '192.0.2.2'), 0);
      await opened.database('sign_in_attempts').update({ tries: 2_000, next_at: opened.database.fn.now() });
      assert.equal(await attempt('another@example.com', '192.0.2.1'), 0);
      assert.ok((await attempt('one-more@example.com', '192.0.2.1')) > 290);
    });

    it('do not count if they succeed, and no longer count after a while', async () => {
      for (let tries = 0; tries < 30; tries += 1) await (await begin('ann@example.com', '192.0.2.1')).succeeded();
      for (let tries = 0; tries < 5; tries += 1) await attempt('ann@example.com', `192.0.2.${tries}`);
      assert.ok((await attempt('ann@example.com', '192.0.2.9')) > 0);
      await pass('15 minutes 1 second');
      for (let tries = 0; tries < 5; tries += 1) assert.equal(await attempt('ann@example.com', `192.0.2.${tries}`), 0);
    });
  });
}
