import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import type { Output } from '../output';

export interface PasswordOptions {
  readonly passwordStdin?: true;
}

/** Never an argument: those are seen by everybody on the machine and kept in the shell's history. */
export function withPasswordOption(command: Command): Command {
  return command.option('--password-stdin', 'read the password from standard input instead of generating one');
}

/** The password that was piped in, or a new one. */
export async function choosePassword({ passwordStdin }: PasswordOptions, output: Output) {
  if (passwordStdin === true) return { password: (await output.read()).replace(/\r?\n$/, ''), isNew: false };
  return { password: randomBytes(18).toString('base64url'), isNew: true };
}
