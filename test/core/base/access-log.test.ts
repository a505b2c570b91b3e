import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { until } from '../../support/until';

/** Writes as many lines as a message says, reports how many the log dropped, and exits at the end of the connection. */
const PROGRAM = `
  const { AccessLog } = require(${JSON.stringify(join(__dirname, '../../../core/base/access-log.ts'))});
  const { log } = require(${JSON.stringify(join(__dirname, '../../../core/base/log.ts'))});
  const { metrics } = require(${JSON.stringify(join(__dirname, '../../../core/base/metrics.ts'))});
  const lines = new AccessLog(1);
  process.on('message', async ({ count, bytes }) => {
    for (let at = 0; at < count; at += 1) {
      if (count < 1_000) log.info({ number: at }, 'other');
      lines.write('call', ',"number":' + at + ',"text":"' + 'ü'.repeat(bytes / 2) + '"');
    }
    const { values } = await metrics.getSingleMetric('tollgate_log_lines_dropped_total').get();
    process.send(values[0].value, () => undefined);
  });
  process.once('disconnect', () => process.exit(0));
`;

interface Output {
  /** The descriptor that the program writes to, or how Node opens one. */
  readonly stdout: number | 'pipe';
  /** Begins to read, and returns what has been read so far. */
  read(child: ChildProcess): () => Promise<string> | string;
}

/** What standard output may be. Node's own pipes are sockets. */
const OUTPUTS: Readonly<Record<string, (folder: string) => Output>> = {
  'a socket': () => ({ stdout: 'pipe', read: ({ stdout }) => collect(stdout as Socket) }),
  'a pipe': (folder) => {
    const path = join(folder, 'pipe');
    execFileSync('mkfifo', [path]);
    const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    const read = () => collect(new Socket({ fd: reader, readable: true, writable: false }));
    return { stdout: openSync(path, 'w'), read };
  },
  'a file': (folder) => {
    const path = join(folder, 'file');
    return { stdout: openSync(path, 'w'), read: () => () => readFile(path, 'utf8') };
  },
};

function collect(stream: Socket): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return () => text;
}

for (const [name, open] of Object.entries(OUTPUTS)) {
  describe(`log lines of calls on ${name}`, function () {
    this.timeout(60_000);
    let folder: string;
    let output: Output;
    let child: ChildProcess;

    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'tollgate-lines-'));
      output = open(folder);
      const args = ['--require', 'tsx/cjs', '--eval', PROGRAM];
      child = spawn(process.execPath, args, { stdio: ['ignore', output.stdout, 'inherit', 'ipc'] });
      if (output.stdout !== 'pipe') closeSync(output.stdout);
    });
    afterEach(async () => {
      child.kill('SIGKILL');
      await rm(folder, { recursive: true });
    });

    async function write(count: number, bytes = 500): Promise<number> {
      child.send({ count, bytes });
      const [dropped] = (await once(child, 'message')) as [number];
      return dropped;
    }

    async function linesOf(read: () => Promise<string> | string, count: number): Promise<Record<string, unknown>[]> {
      const text = await until('all are read', async () => {
        const now = await read();
        return now.split('\n').length - 1 === count ? now : undefined;
      });
      return text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>);
    }

    if (name !== 'a file')
      it('are dropped and counted above 4 MB if no process reads them; every accepted line is written completely', async () => {
        const dropped = await write(40_000);
        // Besides 4 MB of these lines, what the system itself keeps is accepted.
        expect(40_000 - dropped).to.be.within(1, 5_000_000 / 500);
        const lines = await linesOf(output.read(child), 40_000 - dropped);
        expect(lines.every(({ level, msg }) => level === 30 && msg === 'call')).to.equal(true);
      });

    it('keep their order, and are never interleaved with other lines', async () => {
      const read = output.read(child);
      for (const bytes of [500, 3_000]) expect(await write(90, bytes)).to.equal(0);
      const lines = await linesOf(read, 360);
      const numbers = lines.filter(({ msg }) => msg === 'call').map(({ number }) => number);
      expect(numbers).to.deep.equal([1, 2].flatMap(() => Array.from({ length: 90 }, (_, at) => at)));
    });

    it('are written before the process exits, even if they are long', async () => {
      const read = output.read(child);
      expect(await write(3, 10_000)).to.equal(0);
      child.disconnect();
      await once(child, 'exit');
      await linesOf(read, 6);
    });
  });
}
