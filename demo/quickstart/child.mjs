import { spawn } from 'node:child_process';

const LINES_KEPT = 20;
const STOP_WITH_PARENT = new URL('stop-with-parent.mjs', import.meta.url).href;

/**
 * Starts a program of the gateway and keeps its last lines. The program stops when its channel closes, also when this process is
 * killed. `died` rejects if the program ends without being stopped.
 */
export function startChild(name, script, { root, env, show }) {
  // Its own process group: Ctrl-C reaches only this process, which then stops its children one by one.
  const child = spawn(process.execPath, ['--import', STOP_WITH_PARENT, script], {
    cwd: root,
    env,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  });
  const lines = keepLines([child.stdout, child.stderr], show);
  const exited = new Promise((resolve) => child.once('exit', resolve));
  // `close` comes after the whole output is read. Node does not emit it if this side has closed the channel.
  const ended = new Promise((resolve) => child.once('close', (code, signal) => resolve(signal ?? code)));
  let stopping = false;
  const died = ended.then((how) => {
    if (stopping) return new Promise(() => undefined);
    const last = lines().map((line) => `  ${line}`);
    throw new Error(`${name} ended (${how}). Its last lines:\n${last.join('\n') || '  none'}`);
  });
  // Prevents an unhandled rejection when nothing waits for `died` any more.
  died.catch(() => undefined);
  return {
    died,
    kill: () => child.kill('SIGKILL'),
    stop: async () => {
      stopping = true;
      if (child.connected) child.disconnect();
      await exited;
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
