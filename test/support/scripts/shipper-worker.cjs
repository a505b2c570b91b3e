// The shipper's thread for TypeScript sources, because a thread does not inherit the loader of mocha.
require('tsx/cjs');
process.env.LOG_LEVEL = 'silent';
require('../../../core/ledger/outbox/shipper-worker');
