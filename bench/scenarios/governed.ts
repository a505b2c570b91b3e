import { BODY_OF_256 } from '../bodies';
import { inCase, mergeCases, type Outcome, type Scenario } from '../scenario';
import { CASE_MARK, figure, type Round, ratio } from '../table';
import { runWrkRounds } from '../wrk-rounds';

/** Spending limits that every key has and never reaches. No limit per minute is set, because it would need Redis for each call. */
export const LIMITS = { balanceLimit: '900000', dailyLimit: '500000', monthlyLimit: '800000' };

const SLOW_MS = 20;

/** How many times more connections a slow upstream gets than a fast one, so that a measured gateway is equally busy with both. */
const MORE_CONNECTIONS = 8;

const SUBJECTS = ['direct', 'undici-relay', 'billed-relay', 'tollgate', 'tollgate-keys'];

/** Measures calls with all checks and records of the gateway: key, limits, balance, hold, settlement and usage record. */
export const governed: Scenario = {
  name: 'governed',
  summary: `calls of 256 bytes with limits on every key, at an upstream that answers at once and at one that takes ${SLOW_MS} ms`,
  includes: ({ name }) => SUBJECTS.includes(name.replace(/-before$/, '')),
  defaults: { rounds: 5, seconds: 5, warmupSeconds: 10, connections: 32 },
  layout: ({ connections }) => ({
    columns: [
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      ratio('callsPerSecond', 'undici-relay', '× undici-relay'),
      ratio('callsPerSecond', 'billed-relay', '× billed-relay'),
      { key: 'p99OverP50', title: 'p99/p50', digits: 1 },
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      ratio('cpuMicros', 'undici-relay', 'CPU × undici-relay'),
      { key: 'storeMicros', title: 'stores µs/call', digits: 0 },
      ratio('storeMicros', 'billed-relay', 'stores × billed-relay'),
      { key: 'scriptsPerCall', title: 'scripts/call', digits: 2 },
      { key: 'addedP50Ms', title: 'p50 ms added', digits: 3 },
      ratio('addedP50Ms', 'billed-relay', 'added × billed-relay'),
      { key: 'addedP99Ms', title: 'p99 ms added', digits: 3 },
      { key: 'aloneMicros', title: 'CPU µs/call at 1', digits: 0 },
      { key: 'aloneRatio', title: `CPU at 1 × at ${connections}`, digits: 2 },
    ],
    targets: [
      { what: '≥ 1.2 × billed-relay', column: 'callsPerSecond/billed-relay', atLeast: 1.2 },
      { what: '≥ 0.45 × undici-relay', column: 'callsPerSecond/undici-relay', atLeast: 0.45 },
      { what: "stores ≤ 0.65 × billed-relay's", column: 'storeMicros/billed-relay', atMost: 0.65 },
      { what: "CPU ≤ 1.8 × undici-relay's", column: 'cpuMicros/undici-relay', atMost: 1.8 },
      { what: "adds at p50 ≤ 0.8 × billed-relay's", column: 'addedP50Ms/billed-relay', atMost: 0.8 },
      { what: `CPU at one connection ≤ 1.4 × at ${connections}`, column: 'aloneRatio', atMost: 1.4 },
      { what: 'p99 ≤ 5 × p50', column: 'p99OverP50', atMost: 5 },
    ].map((target) => ({ ...target, subject: 'tollgate' })),
    notes: [
      `Each row is run with ${connections} connections and then with one. Added, and CPU at 1, are of one connection.`,
      `A row @ ${SLOW_MS} ms asks an upstream that takes so long, over ${connections * MORE_CONNECTIONS} connections instead of ${connections}.`,
      `Limits of a key: ${Object.keys(LIMITS).join(', ')}. tollgate calls with one busy key, tollgate-keys with 16 keys of 4 accounts in turn.`,
      'Added is the percentile less that of `direct` in the same round. billed-relay has one account and no limits in all rows.',
    ],
  }),
  run: async (rig, subjects, settings) => {
    const outcomes: Outcome[] = [];
    for (const delayMs of [0, SLOW_MS]) {
      const scope = rig.scope();
      const many = settings.connections * (delayMs === 0 ? 1 : MORE_CONNECTIONS);
      rig.options.progress(`upstream that takes ${delayMs} ms`);
      try {
        const outcome = await runWrkRounds(
          scope,
          subjects,
          { ...settings, connections: many },
          {
            delayMs,
            limits: LIMITS,
            body: BODY_OF_256,
            measureRound: async (run) => {
              const metrics = await run(many);
              const { p50Ms = 0, p99Ms = 0, cpuMicros = 0 } = await run(1);
              const aloneRatio = cpuMicros / (metrics['cpuMicros'] ?? 0);
              return { ...metrics, aloneP50Ms: p50Ms, aloneP99Ms: p99Ms, aloneMicros: cpuMicros, aloneRatio };
            },
          },
        );
        const rounds = outcome.rounds.map(withAdded);
        outcomes.push(inCase({ ...outcome, rounds }, delayMs === 0 ? '' : `${CASE_MARK}${delayMs} ms`));
      } finally {
        await scope.stop();
      }
    }
    return mergeCases(outcomes);
  },
};

/** Adds to each row how much its latency exceeds that of direct calls to the upstream (`direct`) in the same round. */
function withAdded(round: Round): Round {
  const added = (name: string, key: string) =>
    (figure(round, name, key) ?? Number.NaN) - (figure(round, 'direct', key) ?? Number.NaN);
  return Object.fromEntries(
    Object.entries(round).map(([name, row]) => [
      name,
      'failed' in row || name === 'direct'
        ? row
        : { ...row, addedP50Ms: added(name, 'aloneP50Ms'), addedP99Ms: added(name, 'aloneP99Ms') },
    ]),
  );
}
