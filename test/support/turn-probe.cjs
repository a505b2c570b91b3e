/**
 * Runs inside a gateway whose turns a test measures: on SIGUSR2 it prints the most CPU that the main thread took in one turn of the event loop since
 * the last signal. Waits for a core do not count.
 */
const { readFileSync } = require('node:fs');

const ownMs = () => Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;

let before = ownMs();
let longest = 0;

function look() {
  const now = ownMs();
  longest = Math.max(longest, now - before);
  before = now;
  // The loop does not keep the process alive.
  setImmediate(look).unref();
}
look();
// Immediates alone would let the loop wait for events in between, and their next turn would come late.
setInterval(() => undefined, 1).unref();

process.on('SIGUSR2', () => {
  process.stdout.write(`TURN ${longest}\n`);
  longest = 0;
});
