import { type ChildProcess, spawn } from 'node:child_process';

/** Keeps this many cores busy until the returned function is called, or until this process ends. */
export function keepCoresBusy(processes: number): () => void {
  const children: ChildProcess[] = Array.from({ length: processes }, () =>
    // The busy process exits by itself when its parent is gone, which it checks once a second.
    spawn(process.execPath, ['-e', BUSY_LOOP, String(process.pid)], { stdio: 'ignore' }),
  );
  return () => {
    for (const child of children) child.kill('SIGKILL');
  };
}

const BUSY_LOOP = `
const parent = Number(process.argv[1]);
for (;;) {
  const until = Date.now() + 1000;
  while (Date.now() < until);
  process.kill(parent, 0);
}`;
