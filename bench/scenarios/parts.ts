import { CHAT_ANSWER, CHAT_BODY } from '../bodies';
import type { Scenario } from '../scenario';
import { runWrkRounds } from '../wrk-rounds';

interface Parts {
  readonly weights: number;
  readonly meters: number;
}

/** Measures the cost of counting: the weights of the scanner, and the meters from an answer to its charge. */
export const parts: Scenario = {
  name: 'parts',
  summary: "the scanner's weights and the meters, against all of a call's CPU",
  includes: ({ name }) => name === 'tollgate',
  defaults: { rounds: 3, seconds: 5, warmupSeconds: 10, connections: 32 },
  layout: () => ({
    columns: [
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 2 },
      { key: 'share', title: '× tollgate', digits: 4, of: 'cpuMicros', against: 'tollgate', how: 'ratio' },
    ],
    targets: [{ what: '≤ 0.05 × tollgate', subject: 'weights and meters', column: 'share', atMost: 0.05 }],
    notes: [
      'A part is measured alone, the quickest of many tries; within a call its code and data are less often in the caches.',
      'Weights are the difference between reading the body of a call with and without them. Meters include looking through the answer.',
    ],
  }),
  run: async (rig, subjects, settings) => {
    const outcome = await runWrkRounds(rig, subjects, settings);
    const program = await rig.program('parts.mjs', {
      env: { DIST_FOLDER: await rig.dist(), CALL_BODY: CHAT_BODY, CALL_ANSWER: CHAT_ANSWER },
    });
    await program.message('ready');
    const rounds = [];
    for (const round of outcome.rounds) {
      program.child.send({});
      const { weights, meters } = await program.message<Parts>('parts', 60_000);
      rounds.push({
        ...round,
        weights: { cpuMicros: weights },
        meters: { cpuMicros: meters },
        'weights and meters': { cpuMicros: weights + meters },
      });
    }
    return { ...outcome, rounds };
  },
};
