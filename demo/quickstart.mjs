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

// Imported here because an older Node could fail at its syntax before it prints the message above.
const { runQuickstart } = await import('./quickstart/run.mjs');
process.exit(await runQuickstart(process.argv.slice(2), process.env));
