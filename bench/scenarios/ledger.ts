import { cpuSeconds } from '../measure';
import type { Program } from '../rig';
import { attempt, orderOfRound, type Scenario } from '../scenario';
import type { Figures, Round } from '../table';

const CONCURRENCY = 64;

interface Ran {
  readonly failure?: string;
  readonly count: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** The ledger alone: how much of a Redis command's price its two steps are. */
export const ledger: Scenario = {
  name: 'ledger',
  summary: 'reserve and settle alone, against a bare SET of the same size',
  includes: () => false,
  defaults: { rounds: 5, seconds: 5, warmupSeconds: 2 },
  layout: () => ({
    columns: [
      { key: 'perSecond', title: 'per second', digits: 0 },
      { key: 'commandsPerSecond', title: 'commands/s', digits: 0 },
      {
        key: 'ratio',
        title: 'commands × SET',
        digits: 3,
        of: 'commandsPerSecond',
        against: 'SET',
        how: 'ratio',
      },
      { key: 'p50Ms', title: 'p50 ms', digits: 2 },
      { key: 'p99Ms', title: 'p99 ms', digits: 2 },
      { key: 'nodeMicros', title: 'Node µs', digits: 0 },
      { key: 'redisMicros', title: 'Redis µs', digits: 0 },
    ],
    targets: [],
    notes: [
      `${CONCURRENCY} at once on one connection, commands of one turn written together. One of "reserve + settle" is two scripts.`,
      'Redis with an append-only file, synced every second. The outbox is not drained meanwhile.',
    ],
  }),
  run: async (rig, _subjects, { rounds, seconds, warmupSeconds }) => {
    const dist = await rig.dist();
    const redis = await rig.redis();
    const program = await rig.program('ledger-load.mjs', {
      env: { DIST_FOLDER: dist, REDIS_URL: redis.url, CONCURRENCY: String(CONCURRENCY) },
    });
    await program.message('ready');
    const pids = { node: program.pid, redis: redis.pid };
    for (const { what } of WORK) await run(program, pids, what, Math.max(0.2, warmupSeconds));
    const done: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const figures: Record<string, Round[string]> = {};
      for (const { name, what } of orderOfRound(WORK, round)) {
        const result = await attempt(rig, () => run(program, pids, what, seconds));
        figures[name] = 'value' in result ? result.value : { failed: result.failure };
        const text = 'value' in result ? `${Math.round(result.value['perSecond'] ?? 0)} per second` : result.failure;
        rig.options.progress(`round ${round + 1}/${rounds} ${name}: ${text}`);
      }
      done.push(figures);
    }
    return { rounds: done, unavailable: {}, versions: {} };
  },
};

const WORK = [
  { name: 'SET', what: 'set' },
  { name: 'reserve + settle', what: 'ledger' },
] as const;

async function run(
  program: Program,
  pids: { node: number; redis: number },
  what: 'set' | 'ledger',
  seconds: number,
): Promise<Figures> {
  const before = { node: cpuSeconds([pids.node]), redis: cpuSeconds([pids.redis]) };
  program.child.send({ what, seconds });
  const ran = await program.message<Ran>('ran', seconds * 1_000 + 10_000);
  if (ran.failure !== undefined) throw new Error(ran.failure);
  return {
    perSecond: ran.perSecond,
    commandsPerSecond: ran.perSecond * (what === 'ledger' ? 2 : 1),
    p50Ms: ran.p50Ms,
    p99Ms: ran.p99Ms,
    nodeMicros: ((cpuSeconds([pids.node]) - before.node) / ran.count) * 1e6,
    redisMicros: ((cpuSeconds([pids.redis]) - before.redis) / ran.count) * 1e6,
  };
}
