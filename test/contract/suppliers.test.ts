import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { compileCheck } from '../../core/settings';
import type { InstanceSpec, SupplierDriver, SupplierKind } from '../../core/supplier';
import { docker } from '../../plugins/sandbox/suppliers/docker';
import { processes } from '../../plugins/sandbox/suppliers/process';
import { findProgram } from '../support/programs';
import { NODE_INSIDE } from '../support/sandboxes';
import { sharedDocker } from '../support/shared';
import { type SupplierSubject, supplierConformance } from './supplier-conformance';

const SPEC: InstanceSpec = { cpu: 0.5, memoryGiB: 0.0625, volumeGiB: 0, gpu: [], ports: true, settings: {} };

const log = pino({ level: 'silent' });

function conforms(what: string, subject: SupplierSubject): void {
  describe(`the driver ${what} conforms`, () => {
    for (const { name, run } of supplierConformance(subject)) it(name, run).timeout(60_000);
  });
}

describe('suppliers', () => {
  let dataFolder: string;

  before(async () => {
    dataFolder = await mkdtemp(join(tmpdir(), 'tollgate-suppliers-'));
  });

  after(() => rm(dataFolder, { recursive: true, force: true }));

  const open = (kind: SupplierKind, settings: unknown): Promise<SupplierDriver> => {
    const checked = compileCheck<never>(kind.schema)(settings);
    if ('problems' in checked) throw new Error(JSON.stringify(checked.problems));
    return kind.open(checked.value, { log, dataFolder });
  };

  conforms('"docker" at a real engine', {
    open: async () => open(docker, { socket: (await sharedDocker()).socket }),
    spec: { ...SPEC, settings: { image: 'tollgate-test:busybox' } },
    webServer: (port) => `exec httpd -f -p ${port}`,
    openUnreachable: () => open(docker, { socket: join(dataFolder, 'nobody.sock') }),
  });

  const byNode = (port: number) =>
    `exec "${NODE_INSIDE}" -e "require('http').createServer((_, a) => a.end(require('fs').readFileSync('index.html'))).listen(${port}, '127.0.0.1')"`;
  for (const isolation of ['none', 'bubblewrap'] as const) {
    conforms(`"process" with isolation ${isolation}`, {
      open: () => {
        if (isolation === 'bubblewrap') findProgram('bwrap');
        return open(processes, { isolation });
      },
      spec: SPEC,
      webServer: byNode,
    });
  }
});
