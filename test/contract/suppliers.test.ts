import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { type SupplierSubject, supplierConformance } from '../../conformance/supplier';
import { compileCheck } from '../../core/base/settings';
import { docker } from '../../plugins/sandbox/suppliers/docker/driver';
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
  describe(`the sandbox driver ${what} passes the conformance suite`, () => {
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

  /** Returns the state letter of the only process of this machine with this command line. */
  const stateOf = async (words: string): Promise<string | undefined> => {
    for (const pid of await readdir('/proc')) {
      const line = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
      const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
      if (line.split('\0').join(' ').trim() === words) return stat.slice(stat.lastIndexOf(')') + 2)[0];
    }
    return undefined;
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

  it('the driver "docker" kills a command with all its processes, even if they have reached the process limit', async () => {
    const driver = await open(docker, { socket: (await sharedDocker()).socket });
    const command = '(while :; do sleep 4711 & done) 2>/dev/null; echo full; exec sleep 4712';
    await withCommand(driver, ATDOCKER, command, async (instance, id, { output, exit }) => {
      await output[Symbol.asyncIterator]().next();
      await driver.signal(instance, id, 'SIGKILL');
      assert.equal((await exit).exitCode, 137);
      assert.equal(await countProcesses('sleep 471'), 0);
    });
  }).timeout(60_000);

  const openIsolated = async () => {
    findProgram('bwrap');
    const driver = await open(processes, {});
    assert.equal(driver.capabilities.isolation, 'namespaces');
    return driver;
  };

  it('with bubblewrap, a process that left its session and emptied its environment ends with its command or instance', async () => {
    const driver = await openIsolated();
    const command = 'env -i setsid sleep 4713 & echo ready; sleep 4714';
    await withCommand(driver, SPEC, command, async (instance, id, { output }) => {
      await output[Symbol.asyncIterator]().next();
      await until('it has begun', async () => (await countProcesses('sleep 4713')) === 1);
      await driver.signal(instance, id, 'SIGKILL');
      await until('none is left of the command', async () => (await countProcesses('sleep 471')) === 0);
      const next = await driver.exec(instance, { id: randomUUID(), command: 'env -i setsid sleep 4715 &', env: {} });
      await next.exit;
      await until('another has begun', async () => (await countProcesses('sleep 4715')) === 1);
      await driver.suspend(instance);
      await until('it has stopped', async () => (await stateOf('sleep 4715')) === 'T');
      await driver.terminate(instance);
      assert.equal(await countProcesses('sleep 4715'), 0);
    });
  }).timeout(60_000);

  it('with bubblewrap, a command reaches no file, process, listener or privilege of the machine', async () => {
    const server = createServer((_, answer) => answer.end('of the machine')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const secret = join(dataFolder, 'secret');
    await writeFile(secret, 'of the machine');
    const ask = `fetch('http://127.0.0.1:${port}').then((a) => a.text()).then(console.log, (e) => console.log(e.cause.code))`;
    const command = [
      `cat ${secret} /proc/1/root${secret} /proc/self/cwd/../..${secret} 2>/dev/null; ls -d ${dataFolder} /root /var 2>/dev/null`,
      `ls /proc | grep -c '^[0-9]'; cat /proc/${process.pid}/environ 2>/dev/null`,
      `"${NODE_INSIDE}" -e "${ask}"; cat /proc/net/tcp /proc/net/unix | grep -c :.*:`,
      `(unshare --user true || unshare --net true) 2>/dev/null && echo more; grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status | tr -d '\\t'`,
    ].join('\n');
    await withCommand(await openIsolated(), SPEC, command, async (_, __, { output }) => {
      let printed = '';
      for await (const { bytes } of output) printed += bytes.toString();
      const [pids, ...rest] = printed.trim().split('\n');
      assert.ok(Number(pids) < 10, printed);
      assert.deepEqual(rest, [
        'ECONNREFUSED',
        '0',
        'CapEff:0000000000000000',
        'CapBnd:0000000000000000',
        'NoNewPrivs:1',
      ]);
    });
    server.close();
  }).timeout(60_000);

  const byNode = (port: number) =>
    `exec "${NODE_INSIDE}" -e "require('http').createServer((_, a) => a.end(require('fs').readFileSync('index.html'))).listen(${port}, '127.0.0.1')"`;
  for (const isolation of ['none', 'auto'] as const) {
    conforms(`"process" with isolation ${isolation}`, {
      open: () => (isolation === 'auto' ? openIsolated() : open(processes, { isolation })),
      spec: SPEC,
      webServer: byNode,
    });
  }
});
