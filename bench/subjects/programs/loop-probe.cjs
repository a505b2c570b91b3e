/**
 * Measures the delay of the event loop from within a Node subject, by `perf_hooks`, which is more exact than any client. Messages of the parent start
 * and read it.
 */
const { monitorEventLoopDelay } = require('node:perf_hooks');

const RESOLUTION_MS = 2;
let histogram;

process.on('message', (message) => {
  if (message === 'loop:start') {
    histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
    histogram.enable();
  } else if (message === 'loop:stop' && histogram !== undefined) {
    histogram.disable();
    const lateness = (nanoseconds) => Math.max(0, nanoseconds / 1e6 - RESOLUTION_MS);
    process.send({ loop: { maxMs: lateness(histogram.max), p99Ms: lateness(histogram.percentile(99)) } });
  }
});
process.channel?.unref();
