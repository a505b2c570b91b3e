import { type FreshRound, runFreshRounds } from '../fresh-rounds';
import { cpuSeconds } from '../measure';
import { startUpstreamNginx } from '../nginx';
import type { Scenario, Settings } from '../scenario';
import type { Metrics } from '../table';
import { runWrk } from '../wrk';
import { loadOf } from '../wrk-rounds';

/** The upstream's delay in ms. It is much longer than a gateway's own time, so that slow and fast gateways serve about as many calls a second. */
const UPSTREAM_MS = 20;

/** Measures the CPU cost of calls right after the start, while the process still compiles its code. */
export const start: Scenario = {
  name: 'start',
  summary: 'CPU per call in the first minute after the start beside a later one, under the same load',
  includes: ({ name }) => ['undici-relay', 'billed-relay', 'tollgate', 'tollgate-before'].includes(name),
  defaults: { rounds: 1, seconds: 60, connections: 8 },
  layout: ({ seconds, connections }) => ({
    columns: [
      { key: 'startSeconds', title: 'CPU s until ready', digits: 2 },
      { key: 'firstMicros', title: 'first CPU µs/call', digits: 0 },
      { key: 'laterMicros', title: 'later CPU µs/call', digits: 0 },
      { key: 'firstOverLater', title: 'first × later', digits: 2 },
      { key: 'firstPerSecond', title: 'first calls/s', digits: 0 },
      { key: 'laterPerSecond', title: 'later calls/s', digits: 0 },
      { key: 'firstP99Ms', title: 'first p99 ms', digits: 1 },
      { key: 'laterP99Ms', title: 'later p99 ms', digits: 1 },
    ],
    targets: [{ what: 'first minute ≤ 1.3 × a later one', subject: 'tollgate', column: 'firstOverLater', atMost: 1.3 }],
    notes: [
      `${connections} connections to an upstream that takes ${UPSTREAM_MS} ms, for three times ${seconds} s: the first, one that is left out, and the later one.`,
      'First begins when the process is ready: what it does before is CPU until ready.',
    ],
  }),
  run: (rig, subjects, settings) =>
    runFreshRounds(
      rig,
      subjects,
      settings.rounds,
      { startUpstream: (scope) => startUpstreamNginx(scope, UPSTREAM_MS), isCold: true },
      (round) => measure(round, settings),
    ),
};

async function measure({ rig, running }: FreshRound, { seconds, connections }: Settings): Promise<Metrics> {
  const startSeconds = cpuSeconds(running.pids);
  const minute = async () => {
    const before = cpuSeconds(running.pids);
    const { calls, callsPerSecond, p99Ms } = await runWrk(rig, loadOf(running, connections, seconds));
    return { micros: ((cpuSeconds(running.pids) - before) / calls) * 1e6, callsPerSecond, p99Ms };
  };
  const first = await minute();
  await minute();
  const later = await minute();
  return {
    startSeconds,
    firstMicros: first.micros,
    laterMicros: later.micros,
    firstOverLater: first.micros / later.micros,
    firstPerSecond: first.callsPerSecond,
    laterPerSecond: later.callsPerSecond,
    firstP99Ms: first.p99Ms,
    laterP99Ms: later.p99Ms,
  };
}
