/**
 * Runs inside a gateway whose work a test counts. Each SIGUSR2 begins the next phase: it counts the bytes that are allocated, then
 * the promises that are made, then the bytes that outlive the collections of the young generation, and prints all three. The phases
 * are separate, because counting promises allocates.
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

const phases = [countBytes, countPromises, countSurvivors, report];
process.on('SIGUSR2', () => phases.shift()?.());

function countBytes() {
  session.connect();
  sample(true);
  process.stdout.write('WORK counts bytes\n');
}

function countPromises() {
  sampled((counted) => {
    bytes = counted;
    hook.enable();
    process.stdout.write('WORK counts promises\n');
  });
}

function countSurvivors() {
  hook.disable();
  sample(false);
  process.stdout.write('WORK counts survivors\n');
}

function sample(includeObjectsCollectedByMinorGC) {
  session.post('HeapProfiler.startSampling', {
    samplingInterval: SAMPLED_EVERY_BYTES,
    includeObjectsCollectedByMajorGC: true,
    includeObjectsCollectedByMinorGC,
  });
}

function sampled(then) {
  session.post('HeapProfiler.stopSampling', (error, { profile }) => {
    if (error !== null) throw error;
    then(sum(profile.head));
  });
}

function report() {
  sampled((survivingBytes) => process.stdout.write(`WORK ${JSON.stringify({ bytes, promises, survivingBytes })}\n`));
}

function sum({ selfSize, children }) {
  return children.reduce((total, child) => total + sum(child), selfSize);
}
