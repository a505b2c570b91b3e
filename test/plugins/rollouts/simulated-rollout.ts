import { type Rollout, type RolloutGroup, SLOTS } from '../../../core/rollouts/rollout';
import { bucketOf, type GroupCounts, type SlotCounts, upToMs } from '../../../plugins/rollouts/counts';
import { type Decision, decide, type Looks } from '../../../plugins/rollouts/decide';

/** How calls of a group behave. */
export interface Behaviour {
  readonly errorRate: number;
  /** The median, with a logarithmic spread. */
  readonly firstTokenMs: number;
  readonly timeSpread: number;
  /** The share of the calls that are not streamed, from 0 to 1. */
  readonly wholeShare?: number;
  readonly cost: number;
  readonly costSpread: number;
}

export const USUAL: Behaviour = { errorRate: 0.01, firstTokenMs: 400, timeSpread: 0.5, cost: 1e5, costSpread: 1 };

/** How much callers differ from each other, as logarithmic spreads. */
export interface Callers {
  readonly count: number;
  readonly activity: number;
  readonly errors: number;
  readonly times: number;
  readonly costs: number;
}

export interface SimulationOptions {
  /** The callers. Without them every call has a caller of its own. */
  readonly callers?: Callers;

  readonly rollout: Rollout;
  readonly control: Behaviour;
  readonly candidate: Behaviour;
  readonly callsPerSecond: number;
  /** Returns a number from 0 to below 1. */
  readonly random: () => number;
}

export interface Simulated {
  readonly end: Decision['do'];
  readonly why: string;
  readonly stage: number;
  /** The number of calls that the candidate failed. */
  readonly hurt: number;
  readonly seconds: number;
}

const DECIDES_EVERY_S = 4;

/** Simulates a rollout from its beginning to its end. */
export function simulate({
  rollout,
  control,
  candidate,
  callers,
  callsPerSecond,
  random,
}: SimulationOptions): Simulated {
  const nextCaller = callers === undefined ? anybody(random) : drawCallers(callers, random);
  const counts = new Map<string, Growing>();
  const of = (stage: number, group: RolloutGroup): Growing => {
    const key = `${stage} ${group}`;
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
      const caller = nextCaller();
      if (caller.lot < share) of(stage, 'candidate').add(candidate, random, caller, false);
      else of(stage, 'control').add(control, random, caller, true);
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

interface Caller {
  readonly lot: number;
  readonly slot: number;
  readonly errors: number;
  readonly buckets: number;
  readonly logCost: number;
}

/** Makes callers without differences that call once. All share one object, because there are millions. */
function anybody(random: () => number): () => Caller {
  const caller = { lot: 0, slot: 0, errors: 1, buckets: 0, logCost: 0 };
  return () => {
    caller.lot = random();
    caller.slot = Math.floor(random() * SLOTS);
    return caller;
  };
}

/** Returns a function that draws the next caller: some call often, some hardly ever. */
function drawCallers({ count, activity, errors, times, costs }: Callers, random: () => number): () => Caller {
  const drawn = Array.from({ length: count }, (): Caller => {
    const [wrong, slow] = twoNormals(random);
    const [dear] = twoNormals(random);
    return {
      lot: random(),
      slot: Math.floor(random() * SLOTS),
      errors: Math.exp(wrong * errors - errors ** 2 / 2),
      buckets: Math.round((slow * times) / Math.log(1.05)),
      logCost: dear * costs,
    };
  });
  let total = 0;
  const until = drawn.map(() => {
    total += Math.exp(twoNormals(random)[0] * activity);
    return total;
  });
  return () => {
    const at = random() * total;
    let [from, to] = [0, count - 1];
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((until[middle] as number) < at) from = middle + 1;
      else to = middle;
    }
    return drawn[from] as Caller;
  };
}

class Growing implements GroupCounts {
  calls = 0;
  errors = 0;
  hurt = 0;
  costE8 = 0n;
  charged = 0;
  logCost = 0;
  logCostSquares = 0;
  readonly firstTokens = new Map<number, number>();
  readonly wholeAnswers = new Map<number, number>();
  readonly slots = new Map<number, GrowingSlot>();

  add(behaviour: Behaviour, random: () => number, caller: Caller, isControl: boolean): void {
    const slot = isControl ? this.#slot(caller.slot) : undefined;
    this.calls += 1;
    if (slot !== undefined) slot.calls += 1;
    if (random() < behaviour.errorRate * caller.errors) {
      this.errors += 1;
      if (slot !== undefined) slot.errors += 1;
      return;
    }
    const drawn = drawnOf(behaviour, random);
    const { logCost: own, bucket: usual } = drawn[Math.floor(random() * drawn.length)] as Drawn;
    const logCost = own + caller.logCost;
    const bucket = Math.max(0, usual + caller.buckets);
    this.charged += 1;
    this.logCost += logCost;
    this.logCostSquares += logCost ** 2;
    const { wholeShare = 0 } = behaviour;
    const isWhole = wholeShare > 0 && random() < wholeShare;
    const times = isWhole ? this.wholeAnswers : this.firstTokens;
    slot?.note(logCost, bucket * LOG_OF_BUCKET, isWhole);
    times.set(bucket, (times.get(bucket) ?? 0) + 1);
  }

  #slot(slot: number): GrowingSlot {
    let known = this.slots.get(slot);
    if (known === undefined) {
      known = new GrowingSlot();
      this.slots.set(slot, known);
    }
    return known;
  }
}

const LOG_OF_BUCKET = Math.log(upToMs(1));

class GrowingSlot implements SlotCounts {
  calls = 0;
  errors = 0;
  charged = 0;
  logCost = 0;
  streams = 0;
  logFirstToken = 0;
  answers = 0;
  logWhole = 0;

  note(logCost: number, logTime: number, isWhole: boolean): void {
    this.charged += 1;
    this.logCost += logCost;
    this[isWhole ? 'answers' : 'streams'] += 1;
    this[isWhole ? 'logWhole' : 'logFirstToken'] += logTime;
  }
}

interface Drawn {
  readonly logCost: number;
  readonly bucket: number;
}

const DRAWN_AHEAD = 50_000;
const drawnAhead = new Map<Behaviour, readonly Drawn[]>();

/** Draws calls from a prepared set, because logarithms are slow. */
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
