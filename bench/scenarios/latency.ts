import type { Scenario } from '../scenario';
import { runWrkRounds } from '../wrk-rounds';

/** Measures the latency that a subject adds for a single client. */
export const latency: Scenario = {
  name: 'latency',
  summary: 'added latency with 1 connection, small JSON bodies',
  includes: () => true,
  defaults: { rounds: 5, seconds: 5, warmupSeconds: 10, connections: 1 },
  layout: () => ({
    columns: [
      { key: 'p50Ms', title: 'p50 ms', digits: 3 },
      { key: 'p99Ms', title: 'p99 ms', digits: 3 },
      { key: 'addedP50', title: 'p50 added', digits: 3, of: 'p50Ms', against: 'direct', how: 'difference' },
      { key: 'addedP99', title: 'p99 added', digits: 3, of: 'p99Ms', against: 'direct', how: 'difference' },
      { key: 'p99OverP50', title: 'p99/p50', digits: 2 },
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      { key: 'storeMicros', title: 'stores µs/call', digits: 0 },
    ],
    targets: [
      { what: 'adds at most 1 ms at p50', subject: 'tollgate', column: 'addedP50', atMost: 1 },
      { what: 'p99 ≤ 3 × p50', subject: 'tollgate', column: 'p99OverP50', atMost: 3 },
    ],
    notes: [
      'Added is the percentile less that of `direct` in the same round.',
      'wrk makes up for calls it could not send while it waited for a slow one, which raises p99; for all alike.',
    ],
  }),
  run: runWrkRounds,
};
