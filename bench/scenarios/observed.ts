import type { Scenario } from '../scenario';
import { ratio } from '../table';
import { runWrkRounds } from '../wrk-rounds';

const SUBJECTS = ['tollgate-unobserved', 'tollgate-observed'];

/** Measures the cost of observing calls with log lines and traces. */
export const observed: Scenario = {
  name: 'observed',
  summary: 'calls as in json, without lines and traces, and with a line for each call and traces of 1 %',
  includes: ({ name }) => SUBJECTS.includes(name),
  defaults: { rounds: 5, seconds: 5, warmupSeconds: 10, connections: 32 },
  layout: () => ({
    columns: [
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      { key: 'p50Ms', title: 'p50 ms', digits: 2 },
      { key: 'p99Ms', title: 'p99 ms', digits: 2 },
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      ratio('cpuMicros', 'tollgate-unobserved', 'CPU × unobserved', 3),
      { key: 'peakMb', title: 'peak MB', digits: 0 },
    ],
    targets: [
      {
        what: 'CPU of a call ≤ 1.08 × unobserved',
        subject: 'tollgate-observed',
        column: 'cpuMicros/tollgate-unobserved',
        atMost: 1.08,
      },
    ],
    notes: [
      'Metrics cannot be turned off: every row counts its calls. Nothing reads them meanwhile.',
      'The collector is a process of its own, and is not in the CPU of a call.',
    ],
  }),
  run: runWrkRounds,
};
