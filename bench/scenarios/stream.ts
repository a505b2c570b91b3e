import { CHAT, type Protocol } from '../bodies';
import { type FreshRound, runFreshRounds } from '../fresh-rounds';
import { cpuSeconds, pause, peakResidentBytes, quiet, resetPeak, residentBytes } from '../measure';
import type { Rig } from '../rig';
import type { Scenario, Settings } from '../scenario';
import type { RunningSubject, Upstream } from '../subjects/subject';
import type { Compared, Metrics } from '../table';

const FLOOD_BYTES = 256 * 1_024 * 1_024;

const added = (key: string, title: string): Compared => ({
  key: `added/${key}`,
  title: `${title} added`,
  digits: 2,
  of: key,
  against: 'direct',
  how: 'difference',
});

/** Measures many simultaneous streams: the delay of events, the cost of an open stream, and the effect of a slow reader on others. */
export const stream: Scenario = {
  name: 'stream',
  summary: 'first-event and per-event added latency, memory per idle stream, slow readers',
  includes: ({ streams }) => streams,
  defaults: { rounds: 3, streams: 200, events: 200, gapMs: 20, idleStreams: 2_000, stalledStreams: 8 },
  layout: ({ streams, events, gapMs, idleStreams, stalledStreams }) => ({
    columns: [
      { key: 'firstP50', title: 'first ms p50', digits: 2 },
      added('firstP50', 'p50'),
      added('firstP99', 'p99'),
      { key: 'eventP50', title: 'event ms p50', digits: 2 },
      added('eventP50', 'p50'),
      added('eventP99', 'p99'),
      added('untilFirstP50', 'call to first p50'),
      { key: 'cpuMillis', title: 'CPU ms/1,000 events', digits: 1 },
      { key: 'cpu/tollgate', title: 'CPU × tollgate', digits: 2, of: 'cpuMillis', against: 'tollgate', how: 'ratio' },
      { key: 'peakMb', title: 'peak MB', digits: 0 },
      { key: 'idleKbPerStream', title: 'KB/idle stream', digits: 0 },
      { key: 'stalledMb', title: 'MB taken/stalled', digits: 1 },
      { key: 'stalledMemoryMb', title: 'memory MB/stalled', digits: 1 },
      { key: 'throttled', title: 'throttled', digits: 0 },
    ],
    targets: [
      {
        what: "first event at most 1 ms after the upstream's (p50)",
        subject: 'tollgate',
        column: 'added/firstP50',
        atMost: 1,
      },
      { what: `≤ 64 KB per idle stream at ${idleStreams}`, subject: 'tollgate', column: 'idleKbPerStream', atMost: 64 },
      {
        what: 'CPU of a Responses event ≤ 1.1 × chat',
        subject: 'tollgate-responses',
        column: 'cpu/tollgate',
        atMost: 1.1,
      },
      { what: 'a slow reader throttles the upstream', subject: 'tollgate', column: 'throttled', atLeast: 1 },
    ],
    notes: [
      `${streams} streams of ${events} events, ${gapMs} ms apart. An event carries the time at which the upstream wrote it;`,
      'first and event are how much later the caller has it, on the same clock. Added is that less the figure of `direct` in the same round.',
      'Call to first is from the start of the call (with connecting) to its first event.',
      `Idle: ${idleStreams} streams, silent after one event, growth of resident memory in a process that was just started.`,
      `Stalled: ${stalledStreams} callers stop reading an endless answer; throttled is 1 when the upstream's own counter stands still after that.`,
    ],
  }),
  run: (rig, subjects, settings) =>
    runFreshRounds(rig, subjects, settings.rounds, {}, async (round) => ({
      ...(await measureIdle(round, settings)),
      ...(await measurePaced(round, settings)),
      ...(await measureStalled(round, settings)),
    })),
};

async function measureIdle({ rig, running }: FreshRound, { idleStreams }: Settings): Promise<Metrics> {
  const script = { idle: true };
  const warm = await openStreams(rig, running, { mode: 'idle', script, streams: 50, rampMs: 200 });
  await warm.stop();
  await quiet(running.pids);
  const before = residentBytes(running.pids);
  const callers = await openStreams(rig, running, { mode: 'idle', script, streams: idleStreams, rampMs: 2_000 });
  await pause(2_000);
  const grown = residentBytes(running.pids) - before;
  await callers.stop();
  await quiet(running.pids);
  return { idleKbPerStream: grown / 1_024 / idleStreams };
}

async function measurePaced({ rig, running }: FreshRound, settings: Settings): Promise<Metrics> {
  const { streams, events, gapMs } = settings;
  const cpuBefore = cpuSeconds(running.pids);
  resetPeak(running.pids);
  const callers = await openStreams(rig, running, {
    mode: 'paced',
    script: { events, gapMs },
    streams,
    events,
    rampMs: 1_000,
    withinMs: events * gapMs * 4 + 20_000,
  });
  await callers.stop();
  const { first, event, untilFirst } = callers.result;
  return {
    firstP50: first.p50Ms,
    firstP99: first.p99Ms,
    eventP50: event.p50Ms,
    eventP99: event.p99Ms,
    untilFirstP50: untilFirst.p50Ms,
    untilFirstP99: untilFirst.p99Ms,
    cpuMillis: ((cpuSeconds(running.pids) - cpuBefore) / (streams * events)) * 1e6,
    peakMb: peakResidentBytes(running.pids) / 1e6,
  };
}

/** Measures how many bytes the upstream could send while the client does not read, and whether the upstream is still sending. */
async function measureStalled({ rig, running, upstream }: FreshRound, settings: Settings): Promise<Metrics> {
  const { stalledStreams } = settings;
  const before = residentBytes(running.pids);
  const script = { floodBytes: FLOOD_BYTES };
  const callers = await openStreams(rig, running, { mode: 'stalled', script, streams: stalledStreams, rampMs: 200 });
  await pause(2_000);
  const taken = await floodBytes(upstream);
  const memory = residentBytes(running.pids) - before;
  await pause(1_000);
  const isStill = (await floodBytes(upstream)) === taken && taken < FLOOD_BYTES * stalledStreams;
  await callers.stop();
  return {
    stalledMb: taken / 1e6 / stalledStreams,
    stalledMemoryMb: memory / 1e6 / stalledStreams,
    throttled: isStill ? 1 : 0,
  };
}

export interface Callers {
  readonly mode: 'paced' | 'idle' | 'stalled';
  readonly script: object;
  readonly streams: number;
  readonly rampMs: number;
  readonly events?: number;
  readonly withinMs?: number;
  /** Returns the body of a call. Default: the protocol's short streaming call, whose script tells the upstream what to stream. */
  readonly bodyOf?: (protocol: Protocol, script: object) => string;
}

interface Percentiles {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface StreamResult {
  readonly failures: number;
  readonly failure?: string;
  readonly first: Percentiles;
  readonly event: Percentiles;
  readonly untilFirst: Percentiles;
}

/** Opens the streams. If one of them fails, the round fails. */
export async function openStreams(
  rig: Rig,
  { url, headers, protocol = CHAT }: RunningSubject,
  { script, withinMs = 60_000, bodyOf = (of, text) => of.scriptedBody(text), ...callers }: Callers,
): Promise<{ result: StreamResult; stop(): Promise<void> }> {
  const settings = JSON.stringify({ ...callers, url, headers, body: bodyOf(protocol, script) });
  const client = await rig.program('stream-client.mjs', { env: { STREAM_CLIENT: settings } });
  const result = await client.message<StreamResult>('done', withinMs);
  if (result.failures > 0) {
    throw new Error(`${result.failures} of ${callers.streams} ${callers.mode} streams failed: ${result.failure}`);
  }
  return { result, stop: () => client.stop() };
}

async function floodBytes({ url }: Upstream): Promise<number> {
  const counters = (await (await fetch(`${url}/counters`)).json()) as { floodBytes: number };
  return counters.floodBytes;
}
