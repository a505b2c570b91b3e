import { spawn } from 'node:child_process';

const LINES_KEPT = 20;
const ENDS_WITHIN_MS = 30_000;

/** Starts one of our programs and keeps its last lines. `died` rejects when it ends without having been stopped. */
export function startChild(name, script, { root, env, show }) {
  // A group of its own: Ctrl-C reaches this program only, which then stops its children one by one.
  const child = spawn(process.execPath, [script], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const lines = keepLines([child.stdout, child.stderr], show);
  const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
  let stopping = false;
  const died = ended.then((how) => {
    if (stopping) return new Promise(() => undefined);
    throw new Error(
      `${name} ended (${how}). Its last lines:\n${
        lines()
          .map((line) => `  ${line}`)
          .join('\n') || '  none'
      }`,
    );
  });
  // Heard by whoever races it; nobody may be racing any more.
  died.catch(() => undefined);
  return {
    died,
    kill: () => child.kill('SIGKILL'),
    stop: async () => {
      stopping = true;
      const timer = setTimeout(() => child.kill('SIGKILL'), ENDS_WITHIN_MS);
      child.kill('SIGTERM');
      await ended;
      clearTimeout(timer);
    },
  };
}

function keepLines(streams, show) {
  const lines = [];
  for (const stream of streams) {
    let rest = '';
    stream.setEncoding('utf8');
    stream.on('data', (text) => {
      if (show) process.stderr.write(text);
      const parts = (rest + text).split('\n');
      rest = parts.pop() ?? '';
      lines.push(...parts.filter((line) => line !== ''));
      lines.splice(0, lines.length - LINES_KEPT);
    });
    stream.on('end', () => {
      if (rest !== '') lines.push(rest);
    });
  }
  return () => lines;
}
