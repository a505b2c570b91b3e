import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../support/until';

/** Writes lines until the log drops some, reports that by messages, and exits. */
const PROGRAM = `
  const { LineLog } = require(${JSON.stringify(join(__dirname, '../../core/line-log.ts'))});
  const { metrics } = require(${JSON.stringify(join(__dirname, '../../core/metrics.ts'))});
  const lines = new LineLog(1);
  process.on('message', async (count) => {
    for (let at = 0; at < count; at += 1) lines.write('call', ',"number":' + at + ',"text":"' + 'x'.repeat(500) + '"');
    const { values } = await metrics.getSingleMetric('tollgate_log_lines_dropped_total').get();
    process.send(values[0].value, () => undefined);
  });
  process.once('disconnect', () => process.exit(0));
`;

describe('log lines that are written faster than they are read', function () {
  this.timeout(60_000);
  let child: ChildProcess;

  beforeEach(() => {
    const args = ['--require', 'tsx/cjs', '--eval', PROGRAM];
    child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] });
  });
  afterEach(() => child.kill('SIGKILL'));

  async function write(count: number): Promise<number> {
    child.send(count);
    const [dropped] = (await once(child, 'message')) as [number];
    return dropped;
  }

  it('are dropped and counted; every accepted line is written whole', async () => {
    const dropped = await write(20_000);
    expect(dropped).to.be.within(1, 19_999);
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    await until('all others are read', () => text.split('\n').length - 1 === 20_000 - dropped);
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.every(({ level, msg }) => level === 30 && msg === 'call')).to.equal(true);
  });

  it('are written when the process exits', async () => {
    let text = '';
    child.stdout?.on('data', (chunk: Buffer) => (text += chunk.toString()));
    const ended = once(child, 'exit');
    expect(await write(3)).to.equal(0);
    child.disconnect();
    await ended;
    await until('all are read', () => text.split('\n').length === 4);
  });
});
