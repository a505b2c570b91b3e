import { shapesFile } from './shapes';

shapesFile().then(
  (text) => process.stdout.write(text),
  (error: unknown) => {
    process.stderr.write(`${String(error)}\n`);
    process.exit(1);
  },
);
