const { relative } = require('node:path');
const { reporters, Runner } = require('mocha');

/** How many files the table of `--times` has. */
const ROWS = 15;

/**
 * Mocha's own output. With `--times` it ends with the files that took longest, hooks included. If TEST_REPORT names a file, mocha's
 * JSON report is written there too.
 */
module.exports = class extends reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    const output = process.env.TEST_REPORT;
    if (output) new reporters.JSON(runner, { ...options, reporterOption: { output } });
    if (!process.argv.includes('--times')) return;
    const millisecondsByFile = new Map();
    const add = ({ file, duration = 0 }) => {
      if (file) millisecondsByFile.set(file, (millisecondsByFile.get(file) ?? 0) + duration);
    };
    runner.on(Runner.constants.EVENT_TEST_END, add);
    runner.on(Runner.constants.EVENT_HOOK_END, add);
    runner.once(Runner.constants.EVENT_RUN_END, () => printTimes(millisecondsByFile));
  }
};

function printTimes(millisecondsByFile) {
  const slowest = [...millisecondsByFile].sort(([, a], [, b]) => b - a).slice(0, ROWS);
  const lines = slowest.map(([file, ms]) => `${(ms / 1_000).toFixed(1).padStart(8)} s  ${relative('.', file)}`);
  process.stdout.write(`\nthe slowest files\n${lines.join('\n')}\n`);
}
