import type { Scenario } from '../scenario';
import { runWrkRounds } from '../wrk-rounds';

const against = (subject: string, name: string) =>
  [
    {
      key: `callsPerSecond/${name}`,
      title: `× ${name}`,
      digits: 3,
      of: 'callsPerSecond',
      against: subject,
      how: 'ratio',
    },
    {
      key: `cpuMicros/${name}`,
      title: `µs more than ${name}`,
      digits: 1,
      of: 'cpuMicros',
      against: subject,
      how: 'difference',
    },
  ] as const;

const [CALLS_TO_ONE, CPU_TO_ONE] = against('tollgate', 'one');
const [CALLS_TO_SPREAD, CPU_TO_SPREAD] = against('tollgate-spread', 'spread');

/**
 * Measures the cost of many candidates (upstreams that may serve a call): the calls of the scenario `json` with one candidate and with
 * fifty. Fifty upstreams also need fifty connection pools. A third case separates both costs: it has fifty upstreams but one candidate per
 * call.
 */
export const routing: Scenario = {
  name: 'routing',
  summary:
    'calls per second as in json, with 1 and with 50 candidates for each call at 50 upstreams of 200 models each',
  includes: ({ name }) => ['tollgate', 'tollgate-spread', 'tollgate-wide'].includes(name),
  defaults: { rounds: 7, seconds: 5, warmupSeconds: 10, connections: 32 },
  layout: () => ({
    columns: [
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      CALLS_TO_ONE,
      CALLS_TO_SPREAD,
      { key: 'p50Ms', title: 'p50 ms', digits: 2 },
      { key: 'p99Ms', title: 'p99 ms', digits: 2 },
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      CPU_TO_ONE,
      CPU_TO_SPREAD,
      { key: 'storeMicros', title: 'stores µs/call', digits: 0 },
      { key: 'peakMb', title: 'peak MB', digits: 0 },
    ],
    targets: [
      { what: '≥ 0.95 × one upstream', subject: 'tollgate-wide', column: CALLS_TO_ONE.key, atLeast: 0.95 },
      { what: '≥ 0.95 × as many upstreams', subject: 'tollgate-wide', column: CALLS_TO_SPREAD.key, atLeast: 0.95 },
    ],
    notes: [
      'one is tollgate, with one upstream; spread has 50, of which each call has one candidate.',
      'In tollgate-wide every call has 50 candidates of equal quality: it is ranked, drawn by weight, held for at the dearest of 50 prices.',
      'CPU is of the subject alone, user and system, and includes what it finishes after the last answer (usage records).',
    ],
  }),
  run: runWrkRounds,
};
