import { agentBody } from '../agent-bodies';
import type { Protocol } from '../bodies';
import { type FreshRound, runFreshRounds } from '../fresh-rounds';
import { cpuSeconds, quiet } from '../measure';
import { inCase, mergeCases, type Outcome, type Scenario, type Settings } from '../scenario';
import { CASE_MARK, type Metrics, ratio } from '../table';
import { runWrkRounds } from '../wrk-rounds';
import { openStreams } from './stream';

const SIZES_KB = [16, 48, 256];
/** The body size of streaming calls, in KB. Unstreamed calls also have a conversation history of this size among others. No answer contains the history. */
const STREAMED_KB = 48;
const EVENTS = 500;
const GAP_MS = 5;
/** The number of consecutive streams over a single connection that a round measures. */
const ALONE = 4;

const SUBJECTS = ['direct', 'undici-relay', 'billed-relay', 'tollgate', 'tollgate-messages', 'tollgate-responses'];

const FORMS = {
  '/v1/chat/completions': 'chat',
  '/v1/messages': 'messages',
  '/v1/responses': 'responses',
} as const;

const bodyOf = (kilobytes: number, { path }: Protocol, script?: object) =>
  agentBody(FORMS[path as keyof typeof FORMS], kilobytes * 1_024, script);

/** Measures the calls of coding agents, which are large and answered by long streams. */
export const agents: Scenario = {
  name: 'agents',
  summary:
    'calls of coding agents: a system prompt, 18 tools and a history of 16, 48 and 256 KB; streams of 500 events',
  includes: ({ name }) => SUBJECTS.includes(name.replace(/-before$/, '')),
  defaults: { rounds: 3, seconds: 5, warmupSeconds: 10, connections: 32 },
  layout: ({ connections }) => ({
    columns: [
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      ratio('cpuMicros', 'undici-relay', 'CPU × undici-relay'),
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      ratio('callsPerSecond', 'undici-relay', '× undici-relay'),
      ratio('callsPerSecond', 'billed-relay', '× billed-relay'),
      { key: 'aloneMicros', title: 'CPU µs/call at 1', digits: 0 },
      ratio('aloneMicros', 'undici-relay', 'CPU at 1 × undici-relay'),
      { key: 'aloneP50Ms', title: 'p50 ms at 1', digits: 2 },
      ratio('aloneP50Ms', 'billed-relay', 'p50 at 1 × billed-relay'),
      { key: 'eventMicros', title: 'CPU µs/event', digits: 1 },
      ratio('eventMicros', 'undici-relay', 'CPU of event × undici-relay'),
      { key: 'eventAloneMicros', title: 'CPU µs/event at 1', digits: 1 },
      { key: 'eventP50', title: 'event ms p50', digits: 2 },
      ratio('eventP50', 'undici-relay', 'event p50 × undici-relay'),
    ],
    targets: [
      { what: 'CPU ≤ 1 × the bare relay', size: 48, column: 'cpuMicros/undici-relay', atMost: 1 },
      { what: 'CPU ≤ 0.7 × the bare relay', size: 256, column: 'cpuMicros/undici-relay', atMost: 0.7 },
      {
        what: 'CPU of an event ≤ 1.4 × the bare relay',
        size: 'stream',
        column: 'eventMicros/undici-relay',
        atMost: 1.4,
      },
      { what: 'event p50 ≤ 1.5 × the bare relay', size: 'stream', column: 'eventP50/undici-relay', atMost: 1.5 },
    ].map(({ size, ...target }) => ({
      ...target,
      subject: `tollgate${CASE_MARK}${size === 'stream' ? 'stream' : `${size} KB`}`,
    })),
    notes: [
      `Each row is run with ${connections} connections and then with one. The upstream reads all of a body before it answers.`,
      'undici-relay, which parses the body, and billed-relay are called in Chat.',
      `Streams answer calls of ${STREAMED_KB} KB with ${EVENTS} events, ${GAP_MS} ms apart. CPU of an event includes that of its call.`,
    ],
  }),
  run: async (rig, subjects, settings) => {
    const outcomes: Outcome[] = [];
    const measured = async (name: string, run: (scope: typeof rig) => Promise<Outcome>) => {
      const scope = rig.scope();
      rig.options.progress(name);
      try {
        outcomes.push(inCase(await run(scope), CASE_MARK + name));
      } finally {
        await scope.stop();
      }
    };
    for (const kilobytes of SIZES_KB)
      await measured(`${kilobytes} KB`, (scope) =>
        runWrkRounds(scope, subjects, settings, {
          readsBodies: true,
          body: (protocol) => bodyOf(kilobytes, protocol),
          measureRound: async (run) => {
            const metrics = await run(settings.connections);
            const { p50Ms = 0, cpuMicros = 0 } = await run(1);
            return { ...metrics, aloneP50Ms: p50Ms, aloneMicros: cpuMicros };
          },
        }),
      );
    await measured('stream', (scope) =>
      runFreshRounds(scope, subjects, settings.rounds, {}, (round) => measureStreams(round, settings)),
    );
    return mergeCases(outcomes);
  },
};

async function measureStreams(round: FreshRound, { connections }: Settings): Promise<Metrics> {
  await streamed(round, connections);
  const { eventMicros, eventP50 } = await streamed(round, connections);
  let alone = 0;
  for (let each = 0; each < ALONE; each += 1) alone += (await streamed(round, 1)).eventMicros;
  return { eventMicros, eventP50, eventAloneMicros: alone / ALONE };
}

/** Opens `streams` streams at about the same time, and reads each to its end. */
async function streamed({ rig, running }: FreshRound, streams: number) {
  const { pids } = running;
  await quiet(pids);
  const before = cpuSeconds(pids);
  const callers = await openStreams(rig, running, {
    mode: 'paced',
    script: { events: EVENTS, gapMs: GAP_MS },
    bodyOf: (protocol, script) => bodyOf(STREAMED_KB, protocol, script),
    streams,
    events: EVENTS,
    rampMs: streams * GAP_MS,
    withinMs: EVENTS * GAP_MS * 8 + 20_000,
  });
  await callers.stop();
  await quiet(pids);
  const eventMicros = ((cpuSeconds(pids) - before) / (streams * EVENTS)) * 1e6;
  return { eventMicros, eventP50: callers.result.event.p50Ms };
}
