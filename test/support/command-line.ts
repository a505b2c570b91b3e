import type { Output } from '../../cli/output';
import { run } from '../../cli/run';

/** How a command line ended. */
export interface Ran {
  readonly status: number;
  /** The answer, which a program would read. */
  readonly out: string;
  /** Everything else. */
  readonly notes: string;
}

/** Runs `tollgate` in this process. */
export async function runTollgate(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input: Partial<Pick<Output, 'read' | 'ask'>> = {},
): Promise<Ran> {
  let out = '';
  let notes = '';
  const status = await run(args, environment, {
    write: async (part) => {
      out += typeof part === 'string' ? part : Buffer.from(part).toString();
    },
    note: (line) => {
      notes += `${line}\n`;
    },
    read: async () => '',
    ...input,
  });
  return { status, out, notes };
}
