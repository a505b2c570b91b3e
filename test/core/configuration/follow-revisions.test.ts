import { expect } from 'chai';
import { followRevisions } from '../../../core/configuration/follow-revisions';
import type { LiveConfiguration, RefusedReload } from '../../../core/configuration/live-configuration';
import { applyRevision } from '../../../core/configuration/revisions';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { until } from '../../support/until';

describe('a node that cannot load an applied revision', function () {
  this.timeout(60_000);
  let opened: TestDatabase;

  before(async () => {
    opened = await (DATABASES.find(({ name }) => name === 'Postgres') as (typeof DATABASES)[number]).open();
    await applyRevision(opened.database, {
      revision: 'r',
      text: 't',
      actor: 'admin',
      note: null,
      restores: null,
      objections: [],
      onlyAfter: undefined,
    });
  });
  after(() => opened?.close());

  it('retries it after a pause, and loads it once the missing part is there', async () => {
    const triedAtMs: number[] = [];
    let isMended = false;
    const live = {
      current: { number: undefined as number | undefined },
      lastFailure: undefined as RefusedReload | undefined,
      reload: async () => {
        triedAtMs.push(performance.now());
        if (isMended) live.current = { number: 1 };
        else live.lastFailure = { at: new Date(), number: 1, actor: 'revision', problems: [] };
      },
    };
    const options = { live: live as unknown as LiveConfiguration, database: opened.database, log: quiet };
    const loop = followRevisions({ ...options, tryAgainMs: 700 });
    try {
      const [first = 0, second = 0] = await until('it was tried again', () => (triedAtMs[1] ? triedAtMs : undefined));
      expect(second - first).to.be.at.least(690);
      isMended = true;
      await until('it was taken', () => live.current.number === 1);
      const { length } = triedAtMs;
      await new Promise((done) => setTimeout(done, 1_000));
      expect(triedAtMs).to.have.length(length);
    } finally {
      await loop.stop();
    }
  });
});
