import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { type GatewayOptions, startGateway, type TestGateway } from '../support/gateway';
import { findProgram } from '../support/programs';
import { dockerGateway } from '../support/sandbox-docker';
import { type RunningSandbox, runningSandbox, SANDBOX_GATEWAY } from '../support/sandboxes';

const BYTES = 1_000_000_000;
const KEPT_BYTES = 1_048_576;
/** How much the gateway's memory may grow for any output. Most of it is garbage that Node has not yet collected. */
const MORE_MEMORY_BYTES = 256 * 1_048_576;

type Driver = Pick<GatewayOptions, 'upstreams' | 'plugins' | 'configure'>;

const DRIVERS: readonly { readonly name: string; options(): Promise<Driver> }[] = [
  {
    name: 'process',
    options: async () => {
      findProgram('bwrap');
      return SANDBOX_GATEWAY;
    },
  },
  { name: 'docker', options: () => dockerGateway() },
];

for (const { name, options } of DRIVERS) {
  describe(`a command with 1 GB of output in a sandbox of the driver "${name}"`, function () {
    this.timeout(600_000);
    let gateway: TestGateway;
    let box: RunningSandbox;

    before(async () => {
      gateway = await startGateway({ ...(await options()), own: true });
      box = await runningSandbox(gateway);
    });
    after(async () => {
      await box?.end();
      await gateway?.stop();
    });

    const run = async (command: string) => (await box.run(command, { timeoutSeconds: 300 })).json;

    it('keeps the last mebibyte of each output stream, marks the truncation, fills no memory and slows no other call', async () => {
      await run('echo warm');
      const before = await memoryOf(gateway.pid);
      let slowestMs = 0;
      let isDone = false;
      const others = (async () => {
        while (!isDone) {
          const atMs = performance.now();
          expect((await gateway.call('/v1/balance', { method: 'GET', key: box.key })).status).to.equal(200);
          slowestMs = Math.max(slowestMs, performance.now() - atMs);
          await sleep(100);
        }
      })();
      const half = BYTES / 2;
      const printed = await run(
        `yes 0123456 | head -c ${half} & yes abcdefg | head -c ${half} >&2; wait; echo end; echo end >&2`,
      );
      isDone = true;
      await others;
      expect(printed).to.include({ status: 'EXITED', exitCode: 0 });
      expect(printed.truncated).to.deep.equal({ stdout: true, stderr: true });
      expect([printed.stdout.length, printed.stderr.length]).to.deep.equal([KEPT_BYTES, KEPT_BYTES]);
      expect(printed.stdout.endsWith('0123456\nend\n')).to.equal(true);
      expect(printed.stderr.endsWith('abcdefg\nend\n')).to.equal(true);
      expect((await box.get(`/commands/${printed.commandId}`)).json).to.deep.equal(printed);
      expect((await memoryOf(gateway.pid)).peak - before.now).to.be.below(MORE_MEMORY_BYTES);
      expect(slowestMs).to.be.below(2_000);
      expect((await run('echo after')).stdout).to.equal('after\n');
    });
  });
}

/** Returns the current and the largest memory of a process in bytes. */
async function memoryOf(pid: number): Promise<{ readonly now: number; readonly peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const read = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1]) * 1_024;
  return { now: read('VmRSS'), peak: read('VmHWM') };
}
