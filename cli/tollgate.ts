#!/usr/bin/env node
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { text } from 'node:stream/consumers';
import { run } from './run';

// Ignores the error of a reader that closes the pipe early (`| head`), because that is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});

void run(process.argv.slice(2), process.env, {
  write: async (part) => {
    if (!process.stdout.write(part)) await once(process.stdout, 'drain');
  },
  note: (line) => process.stderr.write(`${line}\n`),
  read: () => text(process.stdin),
  ...(process.stdin.isTTY && { ask }),
}).then((status) => {
  process.exitCode = status;
});

/** Asks a question on standard error, because standard output contains only the result. */
async function ask(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // The end of input (Ctrl-C, Ctrl-D) counts as an empty answer, which is not a confirmation.
    const ended = once(terminal, 'close').then(() => '\n');
    return await Promise.race([terminal.question(question).catch(() => '\n'), ended]);
  } finally {
    terminal.close();
  }
}
