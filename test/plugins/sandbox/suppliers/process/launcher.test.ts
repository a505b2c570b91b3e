import { strict as assert } from 'node:assert';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Launcher } from '../../../../../plugins/sandbox/suppliers/process/launcher';
import { startProcess } from '../../../../../plugins/sandbox/suppliers/process/run';
import { Ambiguous } from '../../../../../plugins/sandbox/suppliers/supplier';
import { until } from '../../../../support/until';

const PATH = '/usr/bin:/bin';

describe('the launcher of the process driver', function () {
  this.timeout(60_000);
  let launcher: Launcher;

  beforeEach(() => {
    launcher = new Launcher();
  });

  afterEach(() => launcher.close());

  const shell = (command: string, { env = {}, stdin }: { env?: Record<string, string>; stdin?: Buffer } = {}) =>
    startProcess(launcher, { argv: ['/bin/sh', '-c', command], cwd: '/', env: { PATH, ...env }, stdin });

  const printedBy = async ({ output, exit }: Awaited<ReturnType<typeof shell>>) => {
    const printed = { stdout: '', stderr: '' };
    for await (const { stream, bytes } of output) printed[stream] += bytes.toString('latin1');
    return { ...printed, ...(await exit) };
  };

  it('starts programs that are not children of its own process', async () => {
    const { pid, exit } = await shell('sleep 0.3');
    assert.notEqual(await parentOf(pid), process.pid);
    assert.equal((await exit).exitCode, 0);
  });

  it('gives a program its input, folder and variables, and nothing else of its own process', async () => {
    const command = await shell('cat; pwd; env | grep -v ^PWD= | sort; echo bad >&2; exit 3', {
      env: { A: 'b' },
      stdin: Buffer.from('in\n'),
    });
    assert.deepEqual(await printedBy(command), { stdout: `in\n/\nA=b\nPATH=${PATH}\n`, stderr: 'bad\n', exitCode: 3 });
  });

  it('passes words of any length on the next descriptor', async () => {
    const words = ['a b', 'é', 'x'.repeat(2_000_000)];
    const argv = ['/bin/sh', '-c', 'wc -c <&3'];
    const command = await startProcess(launcher, { argv, cwd: '/', env: { PATH }, words, stdin: undefined });
    assert.equal((await printedBy(command)).stdout.trim(), String(4 + 3 + 2_000_001));
  });

  it('keeps the outputs of a hundred simultaneous programs apart', async () => {
    const commands = await Promise.all(
      Array.from({ length: 100 }, (_, n) => shell(`echo ${n}; echo ${-n} >&2; exit ${n}`)),
    );
    for (const [n, printed] of (await Promise.all(commands.map(printedBy))).entries())
      assert.deepEqual(printed, { stdout: `${n}\n`, stderr: `${-n}\n`, exitCode: n });
  });

  it('relays the whole of a large output', async () => {
    const { stdout } = await printedBy(await shell('head -c 20000000 /dev/zero'));
    assert.equal(stdout.length, 20_000_000);
  });

  it('reports the signal that ended a program', async () => {
    const commands = await Promise.all(Array.from({ length: 20 }, () => shell('kill -TERM $$')));
    for (const { exitCode } of await Promise.all(commands.map(printedBy))) assert.equal(exitCode, 143);
  });

  it("rejects a program that cannot be started with the system's error code, and continues", async () => {
    const missing = { argv: ['/no/such/program'], cwd: '/', env: { PATH }, stdin: undefined };
    await assert.rejects(startProcess(launcher, missing), { code: 'ENOENT' });
    assert.equal((await printedBy(await shell('echo on'))).stdout, 'on\n');
  });

  it('reports an unknown end if its helper process is killed, and starts the next program by a new one', async () => {
    const running = await shell('echo up; sleep 1013');
    const helper = await parentOf(running.pid);
    process.kill(helper, 'SIGKILL');
    await assert.rejects(running.exit, Ambiguous);
    process.kill(running.pid, 'SIGKILL');
    const next = await shell('sleep 0.3');
    assert.notEqual(await parentOf(next.pid), helper);
    await next.exit;
  });

  it('ends with the process that uses it, however that ends, and leaves no folder', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-launcher-'));
    const program = join(__dirname, 'launching.ts');
    const child = fork(program, [], { execArgv: ['--require', 'tsx/cjs'], env: { ...process.env, TMPDIR: folder } });
    try {
      const [pid] = (await once(child, 'message')) as [number];
      const helper = await parentOf(pid);
      child.kill('SIGKILL');
      await until('the process that starts programs has ended', async () => (await parentOf(helper)) === 0);
      process.kill(pid, 'SIGKILL');
      const left = (await readdir(folder)).filter((name) => name.startsWith('tollgate-'));
      assert.deepEqual(left, []);
    } finally {
      child.kill('SIGKILL');
      await rm(folder, { recursive: true });
    }
  });

  it('lets programs continue when it is closed', async () => {
    const { pid, output } = await shell('sleep 0.5; echo still');
    await launcher.close();
    assert.notEqual(await parentOf(pid), 0);
    let printed = '';
    for await (const { bytes } of output) {
      printed += bytes.toString();
      break;
    }
    assert.equal(printed, 'still\n');
  });
});

/** Returns the id of the process that started another, or 0 if it has ended. */
async function parentOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => '');
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return state === 'Z' ? 0 : Number(parent ?? 0);
}
