#!/usr/bin/env node
import { once } from 'node:events';
import { run } from './run';

// A reader that has seen enough (`| head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1);
});

void run(process.argv.slice(2), process.env, {
  write: async (text) => {
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
  },
  note: (text) => process.stderr.write(`${text}\n`),
}).then((status) => {
  process.exitCode = status;
});
