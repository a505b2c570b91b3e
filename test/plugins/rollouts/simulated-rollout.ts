import type { SeenCall } from '../../../core/rollouts/live-rollouts';
import type { Rollout, RolloutGroup } from '../../../core/rollouts/rollout';
import { callsPerAccount, decideRollout, type Looks, type RolloutDecision } from '../../../plugins/rollouts/decide';
import { countForGuards } from '../../../plugins/rollouts/guards';

/** How calls of a group behave. Times and costs have a median and a logarithmic spread. */
export interface Behaviour {
  readonly errorRate: number;
  readonly firstTokenMs: number;
  readonly timeSpread: number;
  readonly cost: number;
  readonly costSpread: number;
}

export const USUAL: Behaviour = { errorRate: 0.02, firstTokenMs: 400, timeSpread: 0.5, cost: 1e5, costSpread: 1 };

export interface Simulation {
  readonly rollout: Rollout;
  readonly control: Behaviour;
  readonly treatment: Behaviour;
  /** The error rates of the accounts, which call equally often. Without them each call has an account of its own. */
  readonly accounts?: readonly number[];
  /** The rollout ends after this number of calls of the treatment in a stage. */
  readonly calls: number;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
}

export interface Simulated {
  readonly end: RolloutDecision['do'];
  readonly why: string;
  /** The calls of the treatment in the last stage. */
  readonly calls: number;
}

/** After how many calls of the treatment the guards are asked. */
const STEP = 25;

/** Simulates a rollout whose stages last until the treatment has had `calls` calls. */
export function simulate({ rollout, control, treatment, accounts, calls, random }: Simulation): Simulated {
  const lots = accounts?.map(random);
  const counts = new Map<string, Map<string, number>>();
  const of = (stage: number, group: RolloutGroup) => {
    const known = counts.get(`${stage} ${group}`) ?? new Map<string, number>();
    counts.set(`${stage} ${group}`, known);
    return known;
  };
  const cap = callsPerAccount(rollout);
  const turns = new Map<number, number>();
  let [stage, seen] = [1, 0];
  let looks: Looks = {};
  for (;;) {
    const share = rollout.stages[stage - 1]?.share ?? 0;
    for (let call = 0; call < STEP / share; call += 1) {
      const account = Math.floor(random() * (accounts?.length ?? 0));
      const group = (lots?.[account] ?? random()) < share ? 'treatment' : 'control';
      const behaviour = group === 'treatment' ? treatment : control;
      const turn = turns.get(account) ?? 0;
      turns.set(account, turn + 1);
      if (group === 'treatment') seen += 1;
      const isCompared = accounts === undefined || cap === undefined || turn < cap;
      countForGuards(
        of(stage, group),
        drawCall(behaviour, accounts?.[account] ?? behaviour.errorRate, random),
        isCompared,
      );
    }
    const progress = { status: 'running', stage, stageSinceMs: 0, looks } as const;
    const decision = decideRollout(rollout, progress, of, seen < calls ? 0 : Number.POSITIVE_INFINITY);
    if (decision.looks !== looks && JSON.stringify(decision.looks) !== JSON.stringify(looks)) turns.clear();
    ({ looks } = decision);
    const isStuck = seen > 50 * calls;
    if (decision.do === 'abort' || decision.do === 'complete' || isStuck)
      return { end: decision.do, why: decision.why, calls: seen };
    if (decision.do === 'wait') continue;
    [stage, seen, looks] = [stage + 1, 0, {}];
    turns.clear();
  }
}

const SEEN = { name: 'next', run: 'r', stage: 1, group: 'control', isDrawn: true, accountId: 'a' } as const;
const NO_ANSWER = { costE8: 0n, firstTokenMs: undefined, wholeMs: undefined };
const FAILED: SeenCall = { ...SEEN, ...NO_ANSWER, isError: true, isHurt: false };

const ANSWERED = 20_000;
const answered = new Map<Behaviour, readonly SeenCall[]>();

/** Draws a call. Answered ones come from a prepared set, because logarithms are slow. */
function drawCall(behaviour: Behaviour, errorRate: number, random: () => number): SeenCall {
  if (random() < errorRate) return FAILED;
  const known = answered.get(behaviour) ?? Array.from({ length: ANSWERED }, () => answer(behaviour, random));
  answered.set(behaviour, known);
  return known[Math.floor(random() * ANSWERED)] as SeenCall;
}

function answer({ firstTokenMs: ms, timeSpread, cost, costSpread }: Behaviour, random: () => number): SeenCall {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  const angle = 2 * Math.PI * random();
  const costE8 = BigInt(Math.round(cost * Math.exp(radius * Math.cos(angle) * costSpread)));
  const firstTokenMs = ms * Math.exp(radius * Math.sin(angle) * timeSpread);
  return { ...SEEN, isError: false, isHurt: false, costE8, firstTokenMs, wholeMs: undefined };
}
