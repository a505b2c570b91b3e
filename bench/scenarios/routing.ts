import type { Scenario } from '../scenario';
import { runWrkRounds } from '../wrk-rounds';

/** What choosing among many costs: the calls of `json`, with one candidate and with fifty. */
export const routing: Scenario = {
  name: 'routing',
  summary: 'calls per second as in json, with 1 candidate and with 50 candidates out of 10,000 models',
  includes: ({ name }) => name === 'tollgate' || name === 'tollgate-wide',
  defaults: { rounds: 7, seconds: 5, warmupSeconds: 10, connections: 32 },
  layout: () => ({
    columns: [
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      {
        key: 'callsPerSecond/tollgate',
        title: '× tollgate',
        digits: 3,
        of: 'callsPerSecond',
        against: 'tollgate',
        how: 'ratio',
      },
      { key: 'p50Ms', title: 'p50 ms', digits: 2 },
      { key: 'p99Ms', title: 'p99 ms', digits: 2 },
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
      { key: 'peakMb', title: 'peak MB', digits: 0 },
    ],
    targets: [
      {
        what: '≥ 0.95 × with one candidate',
        subject: 'tollgate-wide',
        column: 'callsPerSecond/tollgate',
        atLeast: 0.95,
      },
    ],
    notes: [
      'Every call has 50 candidates of equal quality: it is ranked, drawn by weight, held for at the dearest of 50 prices.',
      'CPU is of the subject alone, user and system, and includes what it finishes after the last answer (usage records).',
    ],
  }),
  run: runWrkRounds,
};
