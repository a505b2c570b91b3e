import type { Output } from '../../cli/output';
import { run } from '../../cli/run';

/** The result of a command line. */
export interface Ran {
  readonly status: number;
  /** The answer on standard output, for programs. */
  readonly out: string;
  /** All other output. */
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

/** Runs `tollgate` in this process as an operator of this gateway. */
export function operate(
  { adminUrl, adminToken }: { readonly adminUrl: string; readonly adminToken: string },
  args: readonly string[],
  input: Parameters<typeof runTollgate>[2] = {},
): Promise<Ran> {
  return runTollgate(args, { TOLLGATE_URL: adminUrl, TOLLGATE_TOKEN: adminToken }, input);
}
