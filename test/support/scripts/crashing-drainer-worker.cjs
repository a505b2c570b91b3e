// The same, which breaks after it has drained for a while.
require('./drainer-worker.cjs');
setTimeout(() => {
  throw new Error('the thread has crashed');
}, 500);
