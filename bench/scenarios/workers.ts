import type { Scenario } from '../scenario';
import { ratio } from '../table';
import { runWrkRounds } from '../wrk-rounds';

const SUBJECTS = ['undici-relay', 'undici-relay-workers', 'tollgate', 'tollgate-workers'];

/** Measures the cost of several worker processes. They are no faster than one process if all cores are already busy. */
export const workers: Scenario = {
  name: 'workers',
  summary: 'calls as in json, with one worker and with WORKERS=2',
  includes: ({ name }) => SUBJECTS.includes(name),
  defaults: { rounds: 5, seconds: 5, warmupSeconds: 10, connections: 32 },
  layout: () => ({
    columns: [
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      ratio('callsPerSecond', 'tollgate', '× one worker'),
      { key: 'p50Ms', title: 'p50 ms', digits: 2 },
      { key: 'p99Ms', title: 'p99 ms', digits: 2 },
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      ratio('cpuMicros', 'tollgate', 'CPU × one worker'),
      ratio('cpuMicros', 'undici-relay', 'CPU × one relay'),
      { key: 'storeMicros', title: 'stores µs/call', digits: 0 },
      { key: 'scriptsPerCall', title: 'scripts/call', digits: 2 },
      { key: 'peakMb', title: 'peak MB', digits: 0 },
    ],
    targets: [
      {
        what: 'CPU of a call ≤ 1.1 × one worker',
        subject: 'tollgate-workers',
        column: 'cpuMicros/tollgate',
        atMost: 1.1,
      },
    ],
    notes: [
      'What undici-relay-workers takes beside undici-relay is the machine: two busy processes share its caches and its cores.',
      'CPU and memory are of all processes of the gateway together. A version that does not know WORKERS is not available.',
    ],
  }),
  run: runWrkRounds,
};
