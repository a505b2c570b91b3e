// The shipper's thread as it runs from TypeScript: a thread does not inherit what mocha has loaded.
require('tsx/cjs');
process.env.LOG_LEVEL = 'silent';
require('../../../core/ledger/outbox/shipper-worker');
