import { expect } from 'chai';
import { applyRevision } from '../../core/configuration-revisions';
import { followRevisions } from '../../core/follow-revisions';
import type { LiveConfiguration, RefusedReload } from '../../core/live-configuration';
import { DATABASES, quiet, type TestDatabase } from '../support/databases';
import { until } from '../support/until';

describe('a node that cannot take an applied revision', function () {
  this.timeout(60_000);
  let opened: TestDatabase;

  before(async () => {
    opened = await (DATABASES.find(({ name }) => name === 'Postgres') as (typeof DATABASES)[number]).open();
    await applyRevision(opened.database, {
      ...{ revision: 'r', text: 't', actor: 'admin', note: null, restores: null, objections: [], onlyAfter: undefined },
    });
  });
  after(() => opened?.close());

  it('tries it again after a while and not before, and takes it when what was missing is there', async () => {
    let tries = 0;
    let isMended = false;
    const live = {
      current: { number: undefined as number | undefined },
      lastFailure: undefined as RefusedReload | undefined,
      reload: async () => {
        tries += 1;
        if (isMended) live.current = { number: 1 };
        else live.lastFailure = { at: new Date(), number: 1, actor: 'revision', problems: [] };
      },
    };
    const options = { live: live as unknown as LiveConfiguration, database: opened.database, log: quiet };
    const stop = followRevisions({ ...options, tryAgainMs: 700 });
    try {
      await until('it was tried', () => tries === 1);
      await new Promise((done) => setTimeout(done, 400));
      expect(tries).to.equal(1);
      await until('it was tried again', () => tries >= 2);
      isMended = true;
      await until('it was taken', () => live.current.number === 1);
      const then = tries;
      await new Promise((done) => setTimeout(done, 1_000));
      expect(tries).to.equal(then);
    } finally {
      await stop();
    }
  });
});
