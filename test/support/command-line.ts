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

/** The same, as an operator of this gateway. */
export function operate(
  { adminUrl, adminToken }: { readonly adminUrl: string; readonly adminToken: string },
  args: readonly string[],
  input: Parameters<typeof runTollgate>[2] = {},
): Promise<Ran> {
  return runTollgate(args, { TOLLGATE_URL: adminUrl, TOLLGATE_TOKEN: adminToken }, input);
}
