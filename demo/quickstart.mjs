#!/usr/bin/env node
// `npm run quickstart`: starts a gateway from a fresh checkout, with an account, money and a key. It is plain Node without
// dependencies, because it runs before anything is installed.

const NEEDED = [20, 19];

const [major, minor] = process.versions.node.split('.').map(Number);
if (major < NEEDED[0] || (major === NEEDED[0] && minor < NEEDED[1])) {
  console.error(
    `Tollgate needs Node ${NEEDED.join('.')} or newer; this is ${process.versions.node}. See https://nodejs.org.`,
  );
  process.exit(1);
}

// Imported here because an older Node could fail at their syntax before it prints the message above.
const { readOptions, USAGE } = await import('./quickstart/options.mjs');
const { runQuickstart } = await import('./quickstart/run.mjs');

const EXIT_USAGE = 2;

const options = readOptions(process.argv.slice(2), process.env);
if ('wrong' in options) {
  console.error(`${options.wrong}\n\n${USAGE}`);
  process.exit(EXIT_USAGE);
}
if (options.help) {
  console.log(USAGE);
  process.exit(0);
}
process.exit(await runQuickstart(options));
