import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { processes } from '../../../../../plugins/sandbox/suppliers/process';
import {
  type InstanceReference,
  NotRunning,
  type SupplierDriver,
} from '../../../../../plugins/sandbox/suppliers/supplier';
import { endInstancesOf } from '../../../../support/instances';
import { findProgram } from '../../../../support/programs';
import { NODE_INSIDE } from '../../../../support/sandboxes';
import { until } from '../../../../support/until';

const log = pino({ level: 'silent' });
const SPEC = { cpu: 1, memoryGiB: 0.125, volumeGiB: 0, gpu: [], ports: true, settings: {} };

describe('an instance of the process driver with bubblewrap', function () {
  this.timeout(120_000);
  let dataFolder: string;
  let driver: SupplierDriver;
  let instance: InstanceReference;

  before(async () => {
    findProgram('bwrap');
    dataFolder = await mkdtemp(join(tmpdir(), 'tollgate-isolation-'));
    driver = await processes.open({ isolation: 'bubblewrap', files: 'memory' }, { log, dataFolder });
  });

  beforeEach(async () => {
    instance = await driver.create(SPEC, { name: `tg-${randomUUID()}-1`, tags: {}, birthTtlSeconds: 600 });
  });

  afterEach(() => driver.terminate(instance));

  after(async () => {
    await driver?.close();
    await endInstancesOf(dataFolder);
    await rm(dataFolder, { recursive: true, force: true });
  });

  const shell = async (command: string, id = randomUUID()) => {
    const { output, exit } = await driver.exec(instance, { id, command, env: {} });
    let printed = '';
    for await (const { bytes } of output) printed += bytes.toString();
    return { printed, ...(await exit) };
  };

  it('reaches no port of the machine, and has its own ports', async () => {
    const server: Server = createServer((_, answer) => answer.end('of the machine')).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const ask = `fetch('http://127.0.0.1:${port}').then((a) => a.text()).then(console.log, (e) => console.log(e.cause.code))`;
      assert.equal((await shell(`"${NODE_INSIDE}" -e "${ask}"`)).printed, 'ECONNREFUSED\n');
    } finally {
      server.close();
    }
  });

  it("sees none of the machine's sockets and processes in /proc", async () => {
    const { printed } = await shell('cat /proc/net/tcp /proc/net/tcp6 | grep -c : ; ls /proc | grep -c "^[0-9]"');
    const [lines = '', pids = ''] = printed.split('\n');
    // Only the heading of each table is left.
    assert.equal(lines, '0');
    assert(Number(pids) < 10, `${pids} processes`);
    assert.equal((await shell(`cat /proc/${process.pid}/environ`)).exitCode, 1);
  });

  it('has one network for all of its commands', async () => {
    const server = `require('http').createServer((_, a) => a.end('here')).listen(7070, () => console.log('up'))`;
    const id = randomUUID();
    const { output } = await driver.exec(instance, { id, command: `exec "${NODE_INSIDE}" -e "${server}"`, env: {} });
    await output[Symbol.asyncIterator]().next();
    const ask = `fetch('http://127.0.0.1:7070').then((a) => a.text()).then(console.log)`;
    assert.equal((await shell(`"${NODE_INSIDE}" -e "${ask}"`)).printed, 'here\n');
  });

  it('lets a command signal a process of another command', async () => {
    const id = randomUUID();
    const { output, exit } = await driver.exec(instance, { id, command: 'echo $$; exec sleep 1009', env: {} });
    const { value } = await output[Symbol.asyncIterator]().next();
    assert.equal((await shell(`kill -TERM ${String(value?.bytes).trim()}`)).exitCode, 0);
    assert.equal((await exit).exitCode, 143);
  });

  it('continues when a command kills all processes that it can', async () => {
    await shell('kill -9 -1');
    assert.equal((await shell('echo again')).printed, 'again\n');
  });

  it('gets no more memory than its offering allows', async () => {
    const { printed, exitCode } = await shell('head -c 400000000 /dev/zero | tail -c 400000000 | wc -c');
    assert.notEqual(printed.trim().split('\n').at(-1), '400000000');
    assert.equal((await shell('echo again')).printed, 'again\n', `after ${exitCode}`);
  });

  it('gets no more than 256 processes, and is usable again after they were killed', async () => {
    const id = randomUUID();
    const { printed } = await shell('n=0; while [ $n -lt 400 ]; do sleep 1010 & n=$((n + 1)); done; echo all', id);
    assert(!printed.includes('all'));
    assert.equal((await driver.inspectCommand(instance, id)).is, 'running');
    await driver.signal(instance, id, 'SIGKILL');
    assert.equal((await shell('echo again')).printed, 'again\n');
  });

  it('ends with all of its processes when its holder process is killed, and reports that', async () => {
    const text = await readFile(join(dataFolder, 'instances', instance.name, 'instance.json'), 'utf8');
    const { holder } = JSON.parse(text) as { holder: { pid: number } };
    const { output, exit } = await driver.exec(instance, { id: randomUUID(), command: 'echo up; sleep 1011', env: {} });
    await output[Symbol.asyncIterator]().next();
    process.kill(holder.pid, 'SIGKILL');
    assert.equal((await exit).exitCode, 137);
    // The kernel ends the holder only after it has reaped all processes of its namespace.
    await until('the instance has ended', async () => {
      const found = await driver.inspect(instance);
      return found.kind === 'found' && found.state === 'ended';
    });
  });

  it('is not running without its holder process, like one of an older version', async () => {
    const file = join(dataFolder, 'instances', instance.name, 'instance.json');
    const text = await readFile(file, 'utf8');
    const { holder: _, ...rest } = JSON.parse(text) as Record<string, unknown>;
    await writeFile(file, JSON.stringify(rest));
    try {
      await assert.rejects(shell('echo outside'), NotRunning);
      await assert.rejects(driver.files.list(instance, '.', 1), NotRunning);
    } finally {
      await writeFile(file, text);
    }
  });

  it("gives a command no descriptor of its launcher, and no view of its holder's", async () => {
    // Descriptor 3 is the folder that `ls` reads.
    assert.equal((await shell('ls /proc/self/fd | grep -c "^[4-9]$"')).printed, '0\n');
    assert.match((await shell('cat /proc/1/environ 2>&1; ls -l /proc/1/fd 2>&1')).printed, /Permission denied/);
  });

  it('leaves no process and no folder when it is terminated', async () => {
    await shell('env -i setsid sleep 1012 & echo ready');
    await driver.terminate(instance);
    const lines = await Promise.all(
      (await readdir('/proc'))
        .filter((name) => /^\d+$/.test(name))
        .map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')),
    );
    assert(!lines.includes(['sleep', '1012', ''].join('\0')));
    assert.deepEqual(await readdir(join(dataFolder, 'instances')), []);
  });
});
