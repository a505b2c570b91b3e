/** Runs rounds of wrk on each subject, one after the other, with nginx as the upstream. `json` and `latency` use them. */
import { CHAT, MODEL, type Protocol } from './bodies';
import { cpuSeconds, peakResidentBytes, quiet } from './measure';
import { startUpstreamNginx, type UpstreamNginx } from './nginx';
import { countAtRedis, type RedisCounts } from './redis-counts';
import type { Rig } from './rig';
import { attempt, type Outcome, orderOfRound, type Settings } from './scenario';
import type { RunningSubject, StartOptions, Subject } from './subjects/subject';
import type { Metrics, Round } from './table';
import { type Load, LoadFailed, runWrk } from './wrk';

interface Running {
  readonly subject: Subject;
  readonly running: RunningSubject;
}

/** The options in which a scenario differs from `json`. */
export interface WrkOptions extends Pick<StartOptions, 'limits'> {
  /** The upstream's delay before its answer, in ms. Default: none. */
  readonly delayMs?: number;
  /** The body of all calls. Default: the short body of the subject's protocol. */
  readonly body?: string | ((protocol: Protocol) => string);
  /** Whether the upstream reads each body completely before it answers. */
  readonly readsBodies?: boolean;
  /** Measures a round by calling `run`, which runs wrk once. Default: one run with the number of connections in the settings. */
  measureRound?(run: (connections: number) => Promise<Metrics>): Promise<Metrics>;
}

/** Runs the rounds. All subjects stay up during the scenario; while one is measured, the others are idle. */
export async function runWrkRounds(
  rig: Rig,
  subjects: readonly Subject[],
  settings: Settings,
  options: WrkOptions = {},
): Promise<Outcome> {
  const { progress } = rig.options;
  const { delayMs, measureRound = (run) => run(settings.connections) } = options;
  const upstream = await startUpstreamNginx(rig, delayMs, options.readsBodies);
  const unavailable: Record<string, string> = {};
  const started: Running[] = [];
  for (const subject of subjects) {
    progress(`starting ${subject.name}`);
    const result = await attempt(rig, () => startAndWarm(rig, subject, upstream, settings, options));
    if ('value' in result) started.push({ subject, running: result.value });
    else {
      unavailable[subject.name] = result.failure;
      progress(`${subject.name} is not available: ${result.failure}`);
    }
  }
  const rounds: Round[] = [];
  for (let round = 0; round < settings.rounds; round += 1) {
    const metrics: Record<string, Round[string]> = {};
    for (const { subject, running } of orderOfRound(started, round)) {
      const run = (connections: number) =>
        measure(rig, running, upstream, loadOf(running, connections, settings.seconds, options));
      const result = await attempt(rig, () => measureRound(run));
      metrics[subject.name] = 'value' in result ? result.value : { failed: result.failure };
      progress(`round ${round + 1}/${settings.rounds} ${subject.name}: ${describe(result)}`);
    }
    rounds.push(metrics);
  }
  return { rounds, unavailable, versions: versionsOf(started) };
}

/** Starts a subject and checks one of its answers before the measurement. */
async function startAndWarm(
  rig: Rig,
  subject: Subject,
  upstream: UpstreamNginx,
  { warmupSeconds, connections }: Settings,
  options: WrkOptions,
): Promise<RunningSubject> {
  const running = await subject.start(rig, { upstream, limits: options.limits });
  await checkAnswer(running);
  if (warmupSeconds > 0) {
    await runWrk(rig, loadOf(running, connections, warmupSeconds, options));
    await quiet([...running.pids, ...running.storePids]);
  }
  return running;
}

export async function checkAnswer({ url, headers, protocol = CHAT }: RunningSubject): Promise<void> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: protocol.body(MODEL),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the first call failed with ${response.status}: ${text.slice(0, 300)}`);
  const { usage } = JSON.parse(text) as { usage?: { completion_tokens?: number; output_tokens?: number } };
  if ((usage?.completion_tokens ?? usage?.output_tokens) !== 61)
    throw new Error(`the first response reports no usage: ${text.slice(0, 300)}`);
}

async function measure(rig: Rig, running: RunningSubject, upstream: UpstreamNginx, load: Load): Promise<Metrics> {
  const everyone = [...running.pids, ...running.storePids];
  const before = {
    requests: await upstream.requests(),
    redis: await redisCountsOf(running),
    own: cpuSeconds(running.pids),
    stores: cpuSeconds(running.storePids),
  };
  const { calls, callsPerSecond, p50Ms, p99Ms } = await runWrk(rig, load);
  await quiet(everyone);
  const after = await redisCountsOf(running);
  const asked = (await upstream.requests()) - before.requests;
  if (asked < calls) throw new LoadFailed(`the upstream was asked ${asked} times for ${calls} answers`);
  return {
    callsPerSecond,
    p50Ms,
    p99Ms,
    p99OverP50: p99Ms / p50Ms,
    cpuMicros: ((cpuSeconds(running.pids) - before.own) / calls) * 1e6,
    ...(running.storePids.length > 0 && {
      storeMicros: ((cpuSeconds(running.storePids) - before.stores) / calls) * 1e6,
    }),
    ...(before.redis !== undefined &&
      after !== undefined && {
        scriptsPerCall: (after.scripts - before.redis.scripts) / calls,
        readsPerCall: (after.reads - before.redis.reads) / calls,
      }),
    peakMb: peakResidentBytes(running.pids) / 1e6,
  };
}

async function redisCountsOf({ redisUrl }: RunningSubject): Promise<RedisCounts | undefined> {
  return redisUrl === undefined ? undefined : countAtRedis(redisUrl);
}

export function loadOf(
  { url, headers, protocol = CHAT, models = [MODEL], keys }: RunningSubject,
  connections: number,
  seconds: number,
  { body }: Pick<WrkOptions, 'body'> = {},
): Load {
  const one = typeof body === 'function' ? body(protocol) : body;
  const bodies = one === undefined ? models.map(protocol.body) : [one];
  return { url, headers: { 'content-type': 'application/json', ...headers }, bodies, keys, connections, seconds };
}

function describe(result: Awaited<ReturnType<typeof attempt<Metrics>>>): string {
  if (!('value' in result)) return `FAILED: ${result.failure}`;
  const { callsPerSecond = 0, p50Ms = 0, p99Ms = 0 } = result.value;
  return `${Math.round(callsPerSecond)} calls/s, p50 ${p50Ms.toFixed(3)} ms, p99 ${p99Ms.toFixed(3)} ms`;
}

function versionsOf(started: readonly Running[]): Record<string, string> {
  return Object.fromEntries(
    started.flatMap(({ subject, running }) => (running.version === undefined ? [] : [[subject.name, running.version]])),
  );
}
