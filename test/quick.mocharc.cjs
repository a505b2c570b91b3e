const { readdirSync } = require('node:fs');
const { join } = require('node:path');
const slow = require('./slow.mocharc.cjs');

/** The folders with the slowest files come first, so that no process works alone at the end. */
const IN_ORDER = ['test/{contract,gateway,store}/**/*.test.ts', 'test/!(contract|gateway|store)/**/*.test.ts'];

/**
 * Returns all test files in an order that follows from the seed, so that state that one file leaves for the next is seen.
 */
function shuffled(seed) {
  let state = seed;
  const random = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0);
  return readdirSync(__dirname, { recursive: true })
    .filter((path) => path.endsWith('.test.ts') && !path.includes('node_modules'))
    .sort()
    .map((path) => ({ path: join('test', path), place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ path }) => path);
}

/** The files of `npm test`: all but the slow ones. With SHUFFLE=SEED they run in another order. */
module.exports = {
  ...slow,
  reporter: 'test/gate/reporter.cjs',
  ignore: [...slow.ignore, ...slow.spec],
  spec: process.env.SHUFFLE ? shuffled(Number(process.env.SHUFFLE)) : IN_ORDER,
};
