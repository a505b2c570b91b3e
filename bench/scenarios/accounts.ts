import type { Scenario } from '../scenario';
import { ACCOUNTS } from '../subjects/tollgate';
import { ratio } from '../table';
import { runWrkRounds } from '../wrk-rounds';
import { LIMITS } from './governed';

/** Measures busy and idle accounts, because faster calls of busy keys must not slow other calls. */
export const accounts: Scenario = {
  name: 'accounts',
  summary: `calls of ${ACCOUNTS.count} accounts, some busy and most not, beside those of one busy key`,
  includes: ({ name }) => ['tollgate', 'tollgate-accounts'].includes(name.replace(/-before$/, '')),
  defaults: { rounds: 5, seconds: 10, warmupSeconds: 10, connections: 32 },
  layout: () => ({
    columns: [
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      ratio('callsPerSecond', 'tollgate', '× one key'),
      { key: 'p50Ms', title: 'p50 ms', digits: 2 },
      { key: 'p99Ms', title: 'p99 ms', digits: 2 },
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      ratio('cpuMicros', 'tollgate', 'CPU × one key'),
      { key: 'storeMicros', title: 'stores µs/call', digits: 0 },
      ratio('storeMicros', 'tollgate', 'stores × one key'),
      { key: 'scriptsPerCall', title: 'scripts/call', digits: 2 },
      { key: 'readsPerCall', title: 'reads/call', digits: 2 },
      { key: 'peakMb', title: 'peak MB', digits: 0 },
    ],
    targets: [],
    notes: [
      `Account number n of ${ACCOUNTS.count} calls with a chance in proportion to 1 / n ^ ${ACCOUNTS.s}, in the same order in each round.`,
      'Scripts are those that Redis ran (INFO commandstats), 2 a call where each call reserves and settles by itself.',
      'Reads are those of Redis from its connections (INFO stats): commands that were written together are one.',
    ],
  }),
  run: (rig, subjects, settings) => runWrkRounds(rig, subjects, settings, { limits: LIMITS }),
};
