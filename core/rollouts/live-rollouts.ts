import type { Payer } from '../ledger/payer';
import { groupOf, type Place, type Rollout, type RolloutPosition } from './rollout';

/** A call's place in the one rollout that concerns it. Only calls whose group was drawn are compared. */
export interface RolloutPart extends Pick<RolloutPosition, 'run' | 'stage'>, Place {
  readonly name: string;
  /** The treatment's upstream is ejected or disabled, so the call went elsewhere. */
  isMissed: boolean;
}

/** The outcome of a call in a rollout, or of a mirrored call. */
export interface SeenCall extends Omit<RolloutPart, 'group' | 'isMissed'> {
  readonly group: Place['group'] | 'shadow';
  /** It was not answered at the first attempt, or with an error. */
  readonly isError: boolean;
  /** The caller was shown an error. */
  readonly isHurt: boolean;
  readonly costE8: bigint;
  /** Of a stream, and of an answer in one piece: one of them, and neither where there was no answer. */
  readonly firstTokenMs: number | undefined;
  readonly wholeMs: number | undefined;
}

/** What a rollout needs of a call that it draws a group for. */
export interface JoiningCall {
  readonly id: string;
  readonly key: Payer;
  readonly facts: JoiningFacts;
  onEnd(work: () => void): void;
}

interface JoiningFacts {
  readonly attempts: number;
  readonly status: number;
  readonly errorCode: string | undefined;
  readonly upstreamCostE8: bigint;
  readonly firstTokenMs: number | undefined;
  readonly wholeMs: number | undefined;
  /** The call's place once it was asked for; null: it is in no rollout. */
  rollout: RolloutPart | null | undefined;
}

/** Calls that are mirrored at the same time; what would be one more is not. */
const MIRRORS_AT_MOST = 32;
/** What they asked in all, while it is kept for them. */
const MIRRORED_AT_MOST_BYTES = 32 * 1024 * 1024;

/**
 * How far each rollout has come, as calls find it, and what became of them. In memory: a call asks nobody. Who follows the
 * rollouts says where they are and hears what is seen.
 */
export class LiveRollouts {
  #positions: ReadonlyMap<string, RolloutPosition> = new Map();
  #tell: (seen: SeenCall) => void = () => undefined;
  readonly #mirrors = new Set<() => void>();
  #mirroredBytes = 0;
  /** Calls that would have been mirrored and were not: too many were under way. */
  mirrorsDropped = 0;

  /** By `keyOf`; of what is not there, nobody is in. In force for the next call. */
  follow(positions: ReadonlyMap<string, RolloutPosition>): void {
    this.#positions = positions;
  }

  onSeen(tell: (seen: SeenCall) => void): void {
    this.#tell = tell;
  }

  position(rollout: Rollout): RolloutPosition | undefined {
    return this.#positions.get(keyOf(rollout));
  }

  /** The place of a call in a rollout: the same whenever it is asked for in the course of the call. */
  join(rollout: Rollout, call: JoiningCall): RolloutPart | undefined {
    const { facts } = call;
    if (facts.rollout !== undefined) return facts.rollout ?? undefined;
    const position = this.position(rollout);
    facts.rollout = null;
    if (position === undefined) return undefined;
    const { run, stage, share } = position;
    const part = { name: rollout.name, run, stage, ...groupOf(rollout, share, call.key, call.id), isMissed: false };
    facts.rollout = part;
    call.onEnd(() => this.#noteEnd(call, part));
    return part;
  }

  /** Returns whether to mirror this call: a share of the control group's calls, never one of an excluded caller. */
  isMirrored(rollout: Rollout, { group, isDrawn }: RolloutPart): boolean {
    if (rollout.shadow === 0 || group === 'candidate' || !isDrawn) return false;
    return this.position(rollout)?.isOver === false && Math.random() < rollout.shadow;
  }

  note(seen: SeenCall): void {
    this.#tell(seen);
  }

  /** Answers what is to be called at the end of a mirrored call; undefined when there are enough of them. */
  beginMirror(cancel: () => void, bytes: number): (() => void) | undefined {
    if (this.#mirrors.size >= MIRRORS_AT_MOST || this.#mirroredBytes + bytes > MIRRORED_AT_MOST_BYTES) {
      this.mirrorsDropped += 1;
      return undefined;
    }
    this.#mirrors.add(cancel);
    this.#mirroredBytes += bytes;
    return () => {
      if (this.#mirrors.delete(cancel)) this.#mirroredBytes -= bytes;
    };
  }

  endMirrors(): void {
    for (const cancel of this.#mirrors) cancel();
  }

  #noteEnd({ facts }: JoiningCall, part: RolloutPart): void {
    // Who was refused before anybody was asked, or did not wait, says nothing of either group.
    if (facts.attempts === 0 || facts.errorCode === 'CLIENT_LEFT') return;
    const isHurt = facts.status >= 400 || facts.errorCode !== undefined;
    const { upstreamCostE8: costE8, firstTokenMs, wholeMs } = facts;
    this.note({
      ...part,
      isError: isHurt || part.isMissed || facts.attempts > 1,
      isHurt,
      costE8,
      firstTokenMs,
      wholeMs,
    });
  }
}

export function keyOf({ name, definition }: Pick<Rollout, 'name' | 'definition'>): string {
  return `${name} ${definition}`;
}
