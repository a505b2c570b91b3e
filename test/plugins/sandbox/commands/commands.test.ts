import { strict as assert } from 'node:assert';
import type { Knex } from 'knex';
import { pino } from 'pino';
import { newId } from '../../../../core/base/ids';
import type { RunningSandbox } from '../../../../plugins/sandbox/admission/access';
import { Commands } from '../../../../plugins/sandbox/commands/commands';
import { toRow } from '../../../../plugins/sandbox/store/rows';
import { Ambiguous, type SupplierDriver, TimedOut } from '../../../../plugins/sandbox/suppliers/supplier';
import { DATABASES } from '../../../support/databases';
import { rejection } from '../../../support/rejection';
import { until } from '../../../support/until';
import { accepted } from '../simulation/simulate';

const REQUEST = { command: ':', timeoutSeconds: 60, cwd: undefined, env: {}, stdin: undefined, background: false };

describe('sandbox commands whose start or process was lost', function () {
  this.timeout(60_000);
  let database: Knex;
  let close: () => Promise<void>;
  before(async () => {
    const opened = await DATABASES.find(({ name }) => name === 'Postgres')?.open();
    assert.ok(opened !== undefined);
    ({ database, close } = opened);
  });
  after(() => close());

  async function runningSandbox(driver: Partial<SupplierDriver>): Promise<RunningSandbox> {
    const payer = { accountId: newId(), keyId: newId() };
    const { sandbox } = accepted({ seed: 1, trouble: 0, usd: 0n, endAfterMs: 0 }, payer, Date.now());
    const reference = { id: sandbox.id, name: 'tg' };
    const running = { ...sandbox, observedState: 'RUNNING' as const, supplierRef: reference, supplier: newId() };
    await database('accounts').insert({ id: payer.accountId, name: 'one' });
    await database('sandboxes').insert(toRow({ ...running, requestHash: 'x'.repeat(64) }));
    return { sandbox: running, driver: driver as SupplierDriver, reference };
  }

  it('are killed if it is unknown whether they started, whatever happens to other commands', async () => {
    const killed: string[] = [];
    const unsure = await runningSandbox({
      exec: async () => {
        throw new TimedOut('no answer');
      },
      inspectCommand: async () => ({ kind: 'running' }),
      signal: async (_reference, id) => void killed.push(id),
    });
    const silent = await runningSandbox({
      exec: async () => {
        throw new TimedOut('no answer');
      },
      inspectCommand: async () => {
        throw new Ambiguous('no answer');
      },
    });
    const all = [unsure, silent];
    const commands = new Commands({
      database,
      log: pino({ level: 'silent' }),
      now: Date.now,
      limits: { commandsPerSandbox: 2, commandsPerAccount: 2, followersPerSandbox: 2 },
      places: { own: () => [] },
      driverOf: (supplier) => all.find(({ sandbox }) => sandbox.supplier === supplier)?.driver as SupplierDriver,
    });
    for (const each of [silent, unsure]) {
      const refused = await rejection(commands.start(each, REQUEST));
      assert.equal((refused as { code?: string }).code, 'SUPPLIER_TIMEOUT');
    }
    const stop = commands.run();
    const [command] = await until('it was killed', async () => {
      const rows = await database('sandbox_commands').where({ sandbox_id: unsure.sandbox.id, status: 'TIMED_OUT' });
      return rows.length > 0 ? rows : undefined;
    });
    await stop();
    assert.deepEqual(killed, [command.id]);
    const [operation] = await database('sandbox_operations').where({ id: command.operation_id });
    assert.equal(operation.status, 'FAILED');
  });
});
