import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const LINES_KEPT = 30;

/**
 * Runs a program without blocking this process and reports each line that it prints.
 *
 * @throws with the last lines when it fails.
 */
export async function run(
  program: string,
  args: readonly string[],
  { report, ...options }: { report: (line: string) => void; env?: NodeJS.ProcessEnv; cwd?: string },
): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  const kept: string[] = [];
  for (const input of [child.stdout, child.stderr]) {
    createInterface({ input }).on('line', (line) => {
      report(line);
      kept.push(line);
      if (kept.length > LINES_KEPT) kept.shift();
    });
  }
  const code = await new Promise<number | null>((done, failed) => child.once('error', failed).once('close', done));
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${code}:\n${kept.join('\n')}`);
}
