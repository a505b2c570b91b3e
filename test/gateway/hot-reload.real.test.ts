import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { startGateway } from '../support/gateway';
import { databaseOf } from '../support/stores';
import { until } from '../support/until';

describe('A reload', () => {
  it('is written to the audit log before it takes effect, so that a crash cannot lose its actor', async () => {
    const gateway = await startGateway({ stores: 'real', upstreams: { acme: { url: 'http://127.0.0.1:9' } } });
    const database = await databaseOf(gateway.stores);
    const lock = await database.transaction();
    const revision = async () => (await gateway.admin('GET', '/admin/v1/config/revision')).json.revision;
    try {
      const before = await revision();
      await appendFile(join(gateway.configFolder, 'gateway.config.yml'), '# changed\n');
      await lock.raw('LOCK TABLE audit_log IN ACCESS EXCLUSIVE MODE');
      const reloading = gateway.admin('POST', '/admin/v1/config/reload');
      await until('it waits for the audit log', async () => {
        const { rows } = await lock.raw(
          "SELECT 1 FROM pg_locks WHERE relation = 'audit_log'::regclass AND NOT granted",
        );
        return rows.length > 0;
      });
      expect(await revision()).to.equal(before);
      await lock.rollback();
      expect((await reloading).json.revision).not.to.equal(before);
    } finally {
      if (!lock.isCompleted()) await lock.rollback();
      await database.destroy();
      await gateway.stop();
    }
  });
});
