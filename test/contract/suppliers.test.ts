import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { type SupplierSubject, supplierConformance } from '../../conformance/supplier';
import { compileCheck } from '../../core/settings';
import { docker } from '../../plugins/sandbox/suppliers/docker';
import { processes } from '../../plugins/sandbox/suppliers/process';
import type {
  InstanceReference,
  InstanceSpec,
  RunningCommand,
  SupplierDriver,
  SupplierKind,
} from '../../plugins/sandbox/suppliers/supplier';
import { endInstancesOf } from '../support/instances';
import { findProgram } from '../support/programs';
import { NODE_INSIDE } from '../support/sandboxes';
import { sharedDocker } from '../support/shared';
import { until } from '../support/until';

const SPEC: InstanceSpec = { cpu: 0.5, memoryGiB: 0.0625, volumeGiB: 0, gpu: [], ports: true, settings: {} };

const log = pino({ level: 'silent' });

function conforms(what: string, subject: SupplierSubject): void {
  describe(`the driver ${what} conforms`, () => {
    for (const { name, run } of supplierConformance(subject)) it(name, run).timeout(60_000);
  });
}

describe('sandbox drivers', () => {
  let dataFolder: string;

  before(async () => {
    dataFolder = await mkdtemp(join(tmpdir(), 'tollgate-suppliers-'));
  });

  after(async () => {
    await endInstancesOf(dataFolder);
    await rm(dataFolder, { recursive: true, force: true });
  });

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

  /** Counts the processes of this machine with these words in their command line, inside containers and namespaces too. */
  const countProcesses = async (words: string): Promise<number> => {
    const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
    const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')));
    return lines.filter((line) => line.split('\0').join(' ').startsWith(words)).length;
  };

  /** Runs a test with a new instance in which a command runs, and terminates the instance afterwards. */
  const withCommand = async (
    driver: SupplierDriver,
    spec: InstanceSpec,
    command: string,
    test: (instance: InstanceReference, id: string, running: RunningCommand) => Promise<void>,
  ) => {
    const instance = await driver.create(spec, { name: `tg-${randomUUID()}-1`, tags: {}, birthTtlSeconds: 600 });
    try {
      const id = randomUUID();
      await test(instance, id, await driver.exec(instance, { id, command, env: {} }));
    } finally {
      await driver.terminate(instance);
      await driver.close();
    }
  };

  const ATDOCKER: InstanceSpec = { ...SPEC, ports: false, settings: { image: 'tollgate-test:busybox' } };

  it('the driver "docker" kills a command that has started all processes it may, together with them', async () => {
    const driver = await open(docker, { socket: (await sharedDocker()).socket });
    const command = '(while :; do sleep 4711 & done) 2>/dev/null; echo full; exec sleep 4712';
    await withCommand(driver, ATDOCKER, command, async (instance, id, { output, exit }) => {
      await output[Symbol.asyncIterator]().next();
      await driver.signal(instance, id, 'SIGKILL');
      assert.equal((await exit).exitCode, 137);
      assert.equal(await countProcesses('sleep 471'), 0);
    });
  }).timeout(60_000);

  it('with bubblewrap, a process that left the session and emptied its environment ends with its command or instance', async () => {
    findProgram('bwrap');
    const driver = await open(processes, { isolation: 'bubblewrap' });
    const command = 'env -i setsid sleep 4713 & echo ready; sleep 4714';
    await withCommand(driver, SPEC, command, async (instance, id, { output }) => {
      await output[Symbol.asyncIterator]().next();
      await until('it has begun', async () => (await countProcesses('sleep 4713')) === 1);
      await driver.signal(instance, id, 'SIGKILL');
      await until('none is left of the command', async () => (await countProcesses('sleep 471')) === 0);
      const next = await driver.exec(instance, { id: randomUUID(), command: 'env -i setsid sleep 4715 &', env: {} });
      await next.exit;
      await until('another has begun', async () => (await countProcesses('sleep 4715')) === 1);
      await driver.terminate(instance);
      assert.equal(await countProcesses('sleep 4715'), 0);
    });
  }).timeout(60_000);

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
