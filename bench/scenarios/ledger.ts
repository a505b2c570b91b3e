import { cpuSeconds } from '../measure';
import type { Program } from '../rig';
import { attempt, orderOfRound, type Scenario } from '../scenario';
import type { Metrics, Round } from '../table';

const CONCURRENCY = 64;
const ACCOUNTS = 10_000;
const WEIGHED = 2_000;

interface Ran {
  readonly failure?: string;
  readonly count: number;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly mostMs: number;
}

/** Measures the ledger alone: the cost of reserve and settle relative to one Redis command. */
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
        against: 'SET, everysec',
        how: 'ratio',
      },
      { key: 'p50Ms', title: 'p50 ms', digits: 2 },
      { key: 'p99Ms', title: 'p99 ms', digits: 2 },
      { key: 'mostMs', title: 'most ms', digits: 0 },
      { key: 'nodeMicros', title: 'Node µs', digits: 0 },
      { key: 'redisMicros', title: 'Redis µs', digits: 0 },
      { key: 'openBytes', title: 'B open', digits: 0 },
      { key: 'waitingBytes', title: 'B closed, entry waiting', digits: 0 },
      { key: 'closedBytes', title: 'B closed', digits: 0 },
    ],
    targets: [],
    notes: [
      `${CONCURRENCY} at once on one connection, commands of one turn written together. One of "reserve + settle" is two scripts.`,
      'Redis with an append-only file; everysec and always are its appendfsync. The outbox is shipped between rounds.',
      'Replicated: another Redis, whose replica is on the same machine; WAIT 1 as with ledger.waitReplicas, on every answer. A call whose Redis takes longer than 250 ms is refused in production; here it is waited for.',
      `${ACCOUNTS} accounts exist in all rows; the row that names them uses them in turn, the others one. Memory is used_memory per reservation.`,
    ],
  }),
  run: async (rig, _subjects, { rounds, seconds, warmupSeconds }) => {
    const dist = await rig.dist();
    const start = async (waitReplicas: number): Promise<Loader> => {
      const redis = await rig.redis();
      if (waitReplicas > 0) await rig.redis(['--replicaof', '127.0.0.1', String(redis.port)]);
      const program = await rig.program('ledger-load.mjs', {
        env: {
          DIST_FOLDER: dist,
          REDIS_URL: redis.url,
          WAIT_REPLICAS: String(waitReplicas),
          CONCURRENCY: String(CONCURRENCY),
          ACCOUNTS: String(ACCOUNTS),
        },
      });
      await program.message('ready', 120_000);
      return { program, redisPid: redis.pid };
    };
    const loaders = { alone: await start(0), replicated: await start(1) };
    const { program } = loaders.alone;
    for (const work of WORK) await run(loaders[work.on], work, Math.max(0.2, warmupSeconds));
    const done: Round[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const metrics: Record<string, Round[string]> = {};
      for (const work of orderOfRound(WORK, round)) {
        const { name } = work;
        const result = await attempt(rig, () => run(loaders[work.on], work, seconds));
        metrics[name] = 'value' in result ? result.value : { failed: result.failure };
        const text = 'value' in result ? `${Math.round(result.value['perSecond'] ?? 0)} per second` : result.failure;
        rig.options.progress(`round ${round + 1}/${rounds} ${name}: ${text}`);
      }
      program.child.send({ count: WEIGHED });
      metrics['memory'] = await program.message<Metrics>('weighed', 60_000);
      loaders.replicated.program.child.send({ count: 1 });
      await loaders.replicated.program.message<Metrics>('weighed', 60_000);
      done.push(metrics);
    }
    return { rounds: done, unavailable: {}, versions: {} };
  },
};

interface Work {
  readonly name: string;
  readonly what: 'set' | 'ledger' | 'accounts';
  readonly fsync: 'everysec' | 'always';
  readonly on: 'alone' | 'replicated';
}

/** A program that sends load to its own Redis. */
interface Loader {
  readonly program: Program;
  readonly redisPid: number;
}

const WORK: readonly Work[] = [
  { name: 'SET, everysec', what: 'set', fsync: 'everysec', on: 'alone' },
  { name: 'reserve + settle, everysec', what: 'ledger', fsync: 'everysec', on: 'alone' },
  { name: `reserve + settle, everysec, ${ACCOUNTS} accounts`, what: 'accounts', fsync: 'everysec', on: 'alone' },
  { name: 'SET, always', what: 'set', fsync: 'always', on: 'alone' },
  { name: 'reserve + settle, always', what: 'ledger', fsync: 'always', on: 'alone' },
  { name: `reserve + settle, always, ${ACCOUNTS} accounts`, what: 'accounts', fsync: 'always', on: 'alone' },
  { name: 'reserve + settle, everysec, WAIT 1', what: 'accounts', fsync: 'everysec', on: 'replicated' },
];

async function run({ program, redisPid }: Loader, { what, fsync }: Work, seconds: number): Promise<Metrics> {
  const pids = { node: program.pid, redis: redisPid };
  const before = { node: cpuSeconds([pids.node]), redis: cpuSeconds([pids.redis]) };
  program.child.send({ what, seconds, fsync });
  const ran = await program.message<Ran>('ran', seconds * 1_000 + 10_000);
  if (ran.failure !== undefined) throw new Error(ran.failure);
  return {
    perSecond: ran.perSecond,
    commandsPerSecond: ran.perSecond * (what === 'set' ? 1 : 2),
    p50Ms: ran.p50Ms,
    p99Ms: ran.p99Ms,
    mostMs: ran.mostMs,
    nodeMicros: ((cpuSeconds([pids.node]) - before.node) / ran.count) * 1e6,
    redisMicros: ((cpuSeconds([pids.redis]) - before.redis) / ran.count) * 1e6,
  };
}
