/**
 * Runs rounds of a measurement. Each round starts a measured program anew and runs it alone, so that its memory starts from a known state.
 * The scenarios `body`, `stream`, `idle` and `start` use these rounds.
 */
import { CHAT, CHAT_ANSWER, MESSAGES_ANSWER, MODEL, RESPONSES_ANSWER } from './bodies';
import type { Rig } from './rig';
import { attempt, type Outcome, orderOfRound } from './scenario';
import type { RunningSubject, StartOptions, Subject, Upstream } from './subjects/subject';
import type { Metrics, Round } from './table';
import { checkAnswer } from './wrk-rounds';

export interface FreshRound {
  readonly rig: Rig;
  readonly subject: Subject;
  readonly running: RunningSubject;
  readonly upstream: Upstream;
}

export interface FreshOptions extends Pick<StartOptions, 'nodeArgs'> {
  /** Starts an upstream other than the default, which is the scripted upstream. */
  startUpstream?(rig: Rig): Promise<Upstream>;
  /** Whether the round makes no warm-up calls before the measurement. */
  readonly isCold?: boolean;
}

export async function runFreshRounds(
  rig: Rig,
  subjects: readonly Subject[],
  rounds: number,
  fresh: FreshOptions,
  measure: (round: FreshRound) => Promise<Metrics>,
): Promise<Outcome> {
  const unavailable: Record<string, string> = {};
  const done: Round[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const metrics: Record<string, Round[string]> = {};
    for (const subject of orderOfRound(subjects, round)) {
      if (unavailable[subject.name] !== undefined) continue;
      const result = await attempt(rig, () => runOne(rig, subject, fresh, measure));
      if ('value' in result) metrics[subject.name] = result.value;
      else if (result.isUnavailable) unavailable[subject.name] = result.failure;
      else metrics[subject.name] = { failed: result.failure };
      const text = 'value' in result ? describe(result.value) : `FAILED: ${result.failure}`;
      rig.options.progress(`round ${round + 1}/${rounds} ${subject.name}: ${text}`);
    }
    done.push(metrics);
  }
  return { rounds: done, unavailable, versions: {} };
}

async function runOne(
  parent: Rig,
  subject: Subject,
  { nodeArgs = [], startUpstream = startScriptedUpstream, isCold = false }: FreshOptions,
  measure: (round: FreshRound) => Promise<Metrics>,
): Promise<Metrics> {
  const rig = parent.scope();
  try {
    const upstream = await startUpstream(rig);
    const running = await subject.start(rig, { upstream, nodeArgs: subject.isNode ? nodeArgs : [] });
    if (!isCold) await warm(running);
    return await measure({ rig, subject, running, upstream });
  } finally {
    await rig.stop();
  }
}

async function startScriptedUpstream(rig: Rig): Promise<Upstream> {
  const env = { CHAT_ANSWER, MESSAGES_ANSWER, RESPONSES_ANSWER };
  const program = await rig.program('scripted-upstream.mjs', { env });
  return { url: `http://127.0.0.1:${await program.message<number>('port')}`, pid: program.pid };
}

/** Makes 200 calls before the measurement of memory, so that the measured program has loaded and compiled its code. */
async function warm(running: RunningSubject): Promise<void> {
  await checkAnswer(running);
  const headers = { 'content-type': 'application/json', ...running.headers };
  const { protocol = CHAT } = running;
  for (let call = 0; call < 200; call += 1) {
    const response = await fetch(running.url, { method: 'POST', headers, body: protocol.body(MODEL) });
    await response.arrayBuffer();
  }
}

function describe(metrics: Metrics): string {
  return Object.entries(metrics)
    .map(([key, value]) => `${key} ${Number.isInteger(value) ? value : value.toFixed(2)}`)
    .join(', ');
}
