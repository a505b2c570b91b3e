import { randomBytes } from 'node:crypto';
import type { Command } from 'commander';
import type { Output } from '../output';

export interface PasswordOptions {
  readonly passwordStdin?: true;
}

/** Adds the option for a password. It is never an argument, because other users of the machine and the shell's history would see it. */
export function withPasswordOption(command: Command): Command {
  return command.option('--password-stdin', 'read the password from standard input instead of generating one');
}

/** Returns the password from standard input, or a new one. */
export async function choosePassword({ passwordStdin }: PasswordOptions, output: Output) {
  if (passwordStdin === true) return { password: (await output.read()).replace(/\r?\n$/, ''), isNew: false };
  return { password: randomBytes(18).toString('base64url'), isNew: true };
}
