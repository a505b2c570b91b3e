// The shipper's thread, which crashes after it has shipped for a while.
require('./shipper-worker.cjs');
setTimeout(() => {
  throw new Error('the thread has crashed');
}, 500);
