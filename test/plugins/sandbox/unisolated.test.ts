import { strict as assert } from 'node:assert';
import { pino } from 'pino';
import type { Configuration } from '../../../core/configuration/configuration';
import type { Prepare } from '../../../core/configuration/live-configuration';
import { ConfigurationError } from '../../../core/configuration/yaml-file';
import { StartFailure } from '../../../core/start-failure';
import { readOfferings } from '../../../plugins/sandbox/offers/offerings';
import { openSuppliers, type SandboxService } from '../../../plugins/sandbox/service';
import { defineSupplier, registerSupplier, type SupplierDriver } from '../../../plugins/sandbox/suppliers/supplier';
import { refuseUnisolated } from '../../../plugins/sandbox/unisolated';

const log = pino({ level: 'silent' });
const OFFERING = {
  supplier: 'local',
  enabled: true,
  region: 'local',
  resources: { cpu: 1, memoryGiB: 1, volumeGiB: 0, gpu: [] },
  capabilities: [],
  suspension: 'none',
  resumeOnAccess: false,
  maxContinuousRuntime: '24h',
  provisioningLimit: '120s',
  hourlyUsd: { PROVISIONING: 0, RUNNING: 1, SUSPENDED: 0 },
};

describe('sandbox offerings without isolation', () => {
  const drivers = new Map([['local', { capabilities: { isolation: 'none' } } as unknown as SupplierDriver]]);
  let prepare: Prepare | undefined;

  const start = (hostname: string, isEnabled: boolean, isAllowed = false, proxies = 0) => {
    const offeringsOf: SandboxService['offeringsOf'] = (section) =>
      readOfferings(section('offerings') as never, drivers, 660);
    const service = {
      gateway: {
        configuration: { gateway: { http: { hostname } } },
        proxies: { count: proxies },
        liveConfiguration: { take: (given: Prepare) => (prepare = given) },
      },
      drivers,
      log,
      offeringsOf,
      offerings: () => offeringsOf(() => ({ one: { ...OFFERING, enabled: isEnabled } })),
    };
    refuseUnisolated(service as unknown as SandboxService, isAllowed);
  };
  const reload = (isEnabled: boolean) =>
    prepare?.({
      sections: new Map([['offerings', { one: { ...OFFERING, enabled: isEnabled } }]]),
    } as unknown as Configuration);

  it('are refused at the start if clients on other machines reach the gateway', () => {
    assert.throws(() => start('0.0.0.0', true), StartFailure);
    start('127.0.0.1', true);
    start('0.0.0.0', true, true);
  });

  it('are refused on a loopback address if a proxy in front forwards clients from elsewhere', () => {
    assert.throws(() => start('127.0.0.1', true, false, 1), /1 proxies in front \(proxies\.count/);
    start('127.0.0.1', true, true, 1);
    process.env['PUBLIC_URL'] = 'https://gateway.example/';
    try {
      assert.throws(() => start('127.0.0.1', true), /PUBLIC_URL https:\/\/gateway\.example/);
      process.env['PUBLIC_URL'] = 'http://localhost:8080';
      start('127.0.0.1', true);
    } finally {
      delete process.env['PUBLIC_URL'];
    }
  });

  it('are refused at a reload under the same conditions', () => {
    start('0.0.0.0', false);
    assert.throws(() => reload(true), ConfigurationError);
    assert.ok(reload(false) !== undefined);
    start('127.0.0.1', false);
    assert.ok(reload(true) !== undefined);
  });
});

describe('a supplier of sandboxes', () => {
  it('stops the start, with the reason, if its driver cannot name its instances uniquely', async () => {
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

  it("gets a folder of its own in the server's data folder, wherever the process was started", async () => {
    let given = '';
    registerSupplier(
      defineSupplier({
        contract: 'supplier/1',
        name: 'teller',
        summary: 'Tells its folder.',
        schema: { type: 'object' },
        offeringSchema: { type: 'object' },
        open: async (_, { dataFolder }) => {
          given = dataFolder;
          return { capabilities: { uniqueName: true } } as unknown as SupplierDriver;
        },
      }),
    );
    await openSuppliers({ acme: { driver: 'teller' } }, { log, dataFolder: '/data' });
    assert.equal(given, '/data/suppliers/acme');
  });
});
