const slow = require('./slow.mocharc.cjs');

/** The files of `npm test`. The folders with the slowest files come first, so that no process works alone at the end. */
module.exports = {
  ...slow,
  ignore: [...slow.ignore, ...slow.spec],
  spec: ['test/{contract,gateway,store}/**/*.test.ts', 'test/!(contract|gateway|store)/**/*.test.ts'],
};
