import { strict as assert } from 'node:assert';
import { pino } from 'pino';
import { StartFailure } from '../../../../core/base/start-failure';
import { openSuppliers } from '../../../../plugins/sandbox/service';
import { defineSupplier, registerSupplier, type SupplierDriver } from '../../../../plugins/sandbox/suppliers/supplier';

const log = pino({ level: 'silent' });

describe('a supplier of sandboxes', () => {
  it("makes the gateway's start fail, with a reason, if its driver cannot name its instances uniquely", async () => {
    let isClosed = false;
    registerSupplier(
      defineSupplier({
        contract: 'supplier/1',
        name: 'nameless',
        summary: 'Instances without names.',
        schema: { type: 'object' },
        offeringSchema: { type: 'object' },
        open: async () =>
          ({ capabilities: { uniqueName: false }, close: async () => (isClosed = true) }) as unknown as SupplierDriver,
      }),
    );
    await assert.rejects(
      openSuppliers({ acme: { driver: 'nameless' } }, { log, dataFolder: '/data' }),
      (error: Error) => {
        assert.ok(error instanceof StartFailure);
        assert.match(error.message, /suppliers\.acme: the driver "nameless" .*uniqueName/);
        return true;
      },
    );
    assert.ok(isClosed);
  });
});
