import type { Payer } from '../ledger/ledger';
import { groupOf, type Rollout, type RolloutAssignment, type RolloutPosition } from './rollout';

/** The stage and group of a call in the one rollout that it takes part in. The rollout compares only calls whose group was drawn at random. */
export interface RolloutPart extends Pick<RolloutPosition, 'run' | 'stage'>, RolloutAssignment {
  readonly name: string;
  /** Whether the call used an upstream other than the treatment's, because the treatment's upstream is ejected or disabled. */
  isMissed: boolean;
}

/** The outcome of a call in a rollout, or of a mirrored call. */
export interface SeenCall extends Omit<RolloutPart, 'group' | 'isMissed'> {
  readonly group: RolloutAssignment['group'] | 'shadow';
  readonly accountId: string;
  /** Whether an attempt or the whole call failed because of the upstream, or the upstream of the treatment group was unavailable. */
  readonly isError: boolean;
  /** Whether the caller received an error. */
  readonly isHurt: boolean;
  readonly costE8: bigint;
  /** `firstTokenMs` is set for streams, `wholeMs` for unstreamed answers; both are undefined if nothing answered. */
  readonly firstTokenMs: number | undefined;
  readonly wholeMs: number | undefined;
}

/** The parts of a call from which a rollout determines the call's group, and in which it records the result. */
export interface JoiningCall {
  readonly id: string;
  readonly key: Payer;
  readonly facts: JoiningFacts;
  onEnd(work: () => void): void;
}

interface JoiningFacts {
  readonly made: readonly EndedAttempt[];
  readonly status: number;
  readonly errorCode: string | undefined;
  readonly upstreamCostE8: bigint;
  readonly firstTokenMs: number | undefined;
  readonly wholeMs: number | undefined;
  /** The call's stage and group in its rollout; undefined before `join` has determined them, null if the call is in no rollout. */
  rollout: RolloutPart | null | undefined;
}

/** The maximum number of mirrored calls at the same time. Calls above it are not mirrored. */
const MAX_MIRRORS = 32;
/** The maximum total bytes of the requests that are kept for mirrored calls. */
const MAX_MIRRORED_BYTES = 32 * 1024 * 1024;

/**
 * The current position of each rollout, and the outcomes of calls. Both are in memory, so that no call waits. The plugin that follows the
 * rollouts sets the positions and receives the outcomes.
 */
export class LiveRollouts {
  #positions: ReadonlyMap<string, RolloutPosition> = new Map();
  #notify: (seen: SeenCall) => void = () => undefined;
  readonly #mirrors = new Set<() => void>();
  #mirroredBytes = 0;
  /** How many calls were not mirrored, because mirrored calls had reached their maximum number or bytes. */
  mirrorsDropped = 0;

  /** Sets the current stage of each rollout, by `rolloutKeyOf`, from the next call on. A rollout that is not in `positions` gets no calls. */
  follow(positions: ReadonlyMap<string, RolloutPosition>): void {
    this.#positions = positions;
  }

  onSeen(notify: (seen: SeenCall) => void): void {
    this.#notify = notify;
  }

  position(rollout: Rollout): RolloutPosition | undefined {
    return this.#positions.get(rolloutKeyOf(rollout));
  }

  /** Returns the stage and group of a call in a rollout; undefined if the call is in none. The first result is kept and returned for the rest of the call. */
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

  /** Takes a call out of the rollout that it joined, before it has asked an upstream. It may join again. */
  leave({ facts }: JoiningCall, part: RolloutPart): void {
    if (facts.rollout === part) facts.rollout = undefined;
  }

  /** Returns whether to mirror this call: a random share of the control group's calls, never a call of an excluded caller. */
  isMirrored(rollout: Rollout, { group, isDrawn }: RolloutPart): boolean {
    if (rollout.shadow === 0 || group === 'treatment' || !isDrawn) return false;
    return this.position(rollout)?.isOver === false && Math.random() < rollout.shadow;
  }

  note(seen: SeenCall): void {
    this.#notify(seen);
  }

  /** Registers a mirrored call. Returns a function to call at its end; undefined if the limits of mirrored calls are reached. */
  beginMirror(cancel: () => void, bytes: number): (() => void) | undefined {
    if (this.#mirrors.size >= MAX_MIRRORS || this.#mirroredBytes + bytes > MAX_MIRRORED_BYTES) {
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

  #noteEnd({ facts, key }: JoiningCall, part: RolloutPart): void {
    // The call has left the rollout.
    if (facts.rollout !== part) return;
    const { made, status, errorCode, upstreamCostE8: costE8, firstTokenMs, wholeMs } = facts;
    // A call that ended before its first attempt, or whose client disconnected, says nothing about the treatment or the control of a rollout.
    if (made.length === 0 || errorCode === 'CLIENT_LEFT') return;
    const isHurt = status >= 400 || errorCode !== undefined;
    this.note({
      ...part,
      accountId: key.accountId,
      isError: part.isMissed || made.some(isUpstreamsFault) || (isHurt && !OF_THE_CALL.has(status)),
      isHurt,
      costE8,
      firstTokenMs,
      wholeMs,
    });
  }
}

/** Statuses that the call caused, not the upstream. The upstream's health ignores them too. */
const OF_THE_CALL: ReadonlySet<number | undefined> = new Set([400, 404, 409, 413]);

interface EndedAttempt {
  readonly outcome: string;
  readonly status: number | undefined;
}

function isUpstreamsFault({ outcome, status }: EndedAttempt): boolean {
  return outcome !== 'answered' && outcome !== 'cancelled' && !OF_THE_CALL.has(status);
}

export function rolloutKeyOf({ name, definition }: Pick<Rollout, 'name' | 'definition'>): string {
  return `${name} ${definition}`;
}
