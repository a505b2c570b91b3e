import type { Arm, Rollout } from '../../../core/rollout';
import { type ArmCounts, bucketOf } from '../../../plugins/rollouts/counts';
import { type Decision, decide, type Looks } from '../../../plugins/rollouts/decide';

/** What calls of a group are like. */
export interface Behaviour {
  readonly errorRate: number;
  /** Median, and how much it scatters, as logarithms do. */
  readonly firstTokenMs: number;
  readonly timeSpread: number;
  /** Of the calls, 0 to 1, that are not streamed. */
  readonly wholeShare?: number;
  readonly cost: number;
  readonly costSpread: number;
}

export const USUAL: Behaviour = { errorRate: 0.01, firstTokenMs: 400, timeSpread: 0.5, cost: 1e5, costSpread: 1 };

export interface SimulationOptions {
  readonly rollout: Rollout;
  readonly control: Behaviour;
  readonly candidate: Behaviour;
  readonly callsPerSecond: number;
  /** From 0 to below 1. */
  readonly random: () => number;
}

export interface Simulated {
  readonly end: Decision['do'];
  readonly why: string;
  readonly stage: number;
  /** Calls that the candidate failed. */
  readonly hurt: number;
  readonly seconds: number;
}

const DECIDES_EVERY_S = 4;

/** A rollout from its beginning to its end. */
export function simulate({ rollout, control, candidate, callsPerSecond, random }: SimulationOptions): Simulated {
  const counts = new Map<string, Growing>();
  const of = (stage: number, arm: Arm): Growing => {
    const key = `${stage} ${arm}`;
    const known = counts.get(key) ?? new Growing();
    counts.set(key, known);
    return known;
  };
  let stage = 1;
  let sinceMs = 0;
  let looks: Looks = {};
  for (let second = DECIDES_EVERY_S; second < 100_000; second += DECIDES_EVERY_S) {
    const share = rollout.stages[stage - 1]?.share ?? 0;
    for (let call = 0; call < callsPerSecond * DECIDES_EVERY_S; call += 1) {
      const isIn = random() < share;
      of(stage, isIn ? 'candidate' : 'control').add(isIn ? candidate : control, random);
    }
    const progress = { status: 'running', stage, stageSinceMs: sinceMs, looks } as const;
    const decision = decide(rollout, progress, of, second * 1_000);
    looks = decision.looks;
    if (decision.do === 'abort' || decision.do === 'complete') {
      const hurt = rollout.stages.reduce((sum, _, index) => sum + of(index + 1, 'candidate').errors, 0);
      return { end: decision.do, why: decision.why, stage, hurt, seconds: second };
    }
    if (decision.do === 'wait') continue;
    stage += 1;
    sinceMs = second * 1_000;
    looks = {};
  }
  throw new Error('the rollout never ends');
}

class Growing implements ArmCounts {
  calls = 0;
  errors = 0;
  hurt = 0;
  costE8 = 0n;
  charged = 0;
  logCost = 0;
  logCostSquares = 0;
  readonly firstTokens = new Map<number, number>();
  readonly wholeAnswers = new Map<number, number>();

  add(behaviour: Behaviour, random: () => number): void {
    this.calls += 1;
    if (random() < behaviour.errorRate) {
      this.errors += 1;
      return;
    }
    const drawn = drawnOf(behaviour, random);
    const { logCost, bucket } = drawn[Math.floor(random() * drawn.length)] as Drawn;
    this.charged += 1;
    this.logCost += logCost;
    this.logCostSquares += logCost ** 2;
    const { wholeShare = 0 } = behaviour;
    const times = wholeShare > 0 && random() < wholeShare ? this.wholeAnswers : this.firstTokens;
    times.set(bucket, (times.get(bucket) ?? 0) + 1);
  }
}

interface Drawn {
  readonly logCost: number;
  readonly bucket: number;
}

const DRAWN_AHEAD = 50_000;
const drawnAhead = new Map<Behaviour, readonly Drawn[]>();

/** Logarithms take long: calls are drawn from so many that were drawn before. */
function drawnOf(behaviour: Behaviour, random: () => number): readonly Drawn[] {
  const { cost, costSpread, firstTokenMs, timeSpread } = behaviour;
  const known = drawnAhead.get(behaviour);
  if (known !== undefined) return known;
  const drawn = Array.from({ length: DRAWN_AHEAD }, () => {
    const [one, other] = twoNormals(random);
    return {
      logCost: Math.log(cost) + one * costSpread,
      bucket: bucketOf(firstTokenMs * Math.exp(other * timeSpread)),
    };
  });
  drawnAhead.set(behaviour, drawn);
  return drawn;
}

function twoNormals(random: () => number): [number, number] {
  const radius = Math.sqrt(-2 * Math.log(1 - random()));
  const angle = 2 * Math.PI * random();
  return [radius * Math.cos(angle), radius * Math.sin(angle)];
}
