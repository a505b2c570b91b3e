import { runFreshRounds } from '../fresh-rounds';
import { cpuSeconds, pause, quiet } from '../measure';
import type { Scenario } from '../scenario';
import type { RunningSubject } from '../subjects/subject';
import type { Metrics } from '../table';

/** Measures the memory and CPU time of a gateway without calls. */
export const idle: Scenario = {
  name: 'idle',
  summary: 'CPU of a process without calls, and of its Redis and Postgres',
  includes: ({ name }) => ['tollgate', 'tollgate-before'].includes(name),
  defaults: { rounds: 1, seconds: 60 },
  layout: ({ seconds }) => ({
    columns: [
      { key: 'process', title: 'process %', digits: 2 },
      { key: 'redis', title: 'Redis %', digits: 2 },
      { key: 'postgres', title: 'Postgres %', digits: 2 },
      { key: 'all', title: 'all %', digits: 2 },
    ],
    targets: [{ what: '≤ 0.5 % of a core', subject: 'tollgate', column: 'all', atMost: 0.5 }],
    notes: [`Of one core, over ${seconds} s, after 200 calls whose records have been written.`],
  }),
  run: (rig, subjects, { rounds, seconds }) =>
    runFreshRounds(rig, subjects, rounds, {}, ({ running }) => measure(running, seconds)),
};

async function measure(
  { pids, storePids: [redis = 0, postgres = 0] }: RunningSubject,
  seconds: number,
): Promise<Metrics> {
  const all = [...pids, redis, postgres];
  await quiet(all);
  const read = () => ({
    process: cpuSeconds(pids),
    redis: cpuSeconds([redis]),
    postgres: cpuSeconds([postgres]),
    all: cpuSeconds(all),
  });
  const before = read();
  await pause(seconds * 1_000);
  const after = read();
  const share = (of: keyof typeof before) => ((after[of] - before[of]) / seconds) * 100;
  return { process: share('process'), redis: share('redis'), postgres: share('postgres'), all: share('all') };
}
