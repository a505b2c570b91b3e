import type { Scenario } from '../scenario';
import { runWrkRounds } from '../wrk-rounds';

const SUBJECTS = ['tollgate', 'tollgate-rollout', 'tollgate-shadow'];

/** Measures the cost that a rollout adds to a call, and how mirrored calls affect the client of the original call. */
export const rollout: Scenario = {
  name: 'rollout',
  summary: 'calls as in json without a rollout, with one under way, and with one that mirrors every call',
  includes: ({ name }) => SUBJECTS.includes(name),
  defaults: { rounds: 5, seconds: 5, warmupSeconds: 5, connections: 32 },
  layout: () => ({
    columns: [
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      { key: 'p50Ms', title: 'p50 ms', digits: 3 },
      {
        key: 'p50Ms/tollgate',
        title: 'p50 ms more',
        digits: 3,
        of: 'p50Ms',
        against: 'tollgate',
        how: 'difference',
      },
      { key: 'p99Ms', title: 'p99 ms', digits: 3 },
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      {
        key: 'cpuMicros/tollgate',
        title: 'CPU µs more',
        digits: 1,
        of: 'cpuMicros',
        against: 'tollgate',
        how: 'difference',
      },
      { key: 'storeMicros', title: 'stores µs/call', digits: 0 },
    ],
    targets: [],
    notes: [
      'With one connection (--connections 1) it shows what a caller waits for a mirrored call: at most 1 ms is wanted.',
      'The mirrored call is work of its own, beside its caller: CPU is of both.',
    ],
  }),
  run: runWrkRounds,
};
