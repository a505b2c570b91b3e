const base = require('../.mocharc.json');

/**
 * The files of `npm run test:long`: what takes real time by its nature, or several nodes (`test/long`), browsers, and other files
 * that take 12 seconds and more. `npm test` leaves them out, so that it ends within 8 minutes on two cores.
 */
module.exports = {
  ...base,
  spec: [
    'test/console/**/*.test.ts',
    'test/long/**/*.test.ts',
    'test/deploy/**/*.test.ts',
    ...[
      'attempts',
      'blocked-loop',
      'broken-for-stalled-clients',
      'cors',
      'encoded-bodies',
      'ended-calls',
      'endings',
      'growing-holds',
      'hard-endings',
      'hot-reload',
      'keep-alive',
      'key-access',
      'left-calls',
      'mid-stream',
      'proxies',
      'sandbox-port-keys',
      'shutdown-grace',
      'start',
      'tls',
      'traces',
      'uncaught',
      'web-socket-ends',
      'wire-faults',
    ].map((story) => `test/gateway/${story}.test.ts`),
    'test/store/ledger/redis-sentinel.test.ts',
    'test/store/storage/upgrade.test.ts',
  ],
};
