/**
 * Runs inside a gateway whose work a test counts. Each SIGUSR2 begins the next phase: it counts the bytes that are allocated, then
 * the promises that are made, and then prints both. The phases are separate, because counting promises allocates.
 */
const { createHook } = require('node:async_hooks');
const { Session } = require('node:inspector');

const SAMPLED_EVERY_BYTES = 1_024;

const session = new Session();
let bytes = 0;
let promises = 0;
const hook = createHook({
  init: (_id, type) => {
    if (type === 'PROMISE') promises += 1;
  },
});

const phases = [countBytes, countPromises, report];
process.on('SIGUSR2', () => phases.shift()?.());

function countBytes() {
  session.connect();
  session.post('HeapProfiler.startSampling', {
    samplingInterval: SAMPLED_EVERY_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC: true,
  });
  process.stdout.write('WORK counts bytes\n');
}

function countPromises() {
  session.post('HeapProfiler.stopSampling', (error, { profile }) => {
    if (error !== null) throw error;
    bytes = sum(profile.head);
    hook.enable();
    process.stdout.write('WORK counts promises\n');
  });
}

function report() {
  hook.disable();
  process.stdout.write(`WORK ${JSON.stringify({ bytes, promises })}\n`);
}

function sum({ selfSize, children }) {
  return children.reduce((total, child) => total + sum(child), selfSize);
}
