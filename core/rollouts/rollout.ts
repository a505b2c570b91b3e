import { createHash, hash } from 'node:crypto';
import type { Payer } from '../ledger/payer';

/** A change that is released in stages: some calls are served with it, the others as before, until all are or none. */
export interface Rollout {
  readonly name: string;
  readonly change: RolloutChange;
  /** What keeps its group: all calls of an account, all calls of a key, or each call by itself. */
  readonly stickyBy: 'account' | 'key' | 'request';
  /** Ids of accounts and keys that are in the treatment from the first stage on (`include`), or never (`exclude`). */
  readonly include: ReadonlySet<string>;
  readonly exclude: ReadonlySet<string>;
  readonly stages: readonly [RolloutStage, ...RolloutStage[]];
  readonly guards: readonly Guard[];
  /** Share of the control group's calls, 0 to 1, that are mirrored to the treatment. The client never receives a mirrored answer. */
  readonly shadow: number;
  readonly onAbort: 'rollback' | 'hold';
  /** A hash of `change` and `stickyBy`. A rollout with another definition starts again. */
  readonly definition: string;
}

export type RolloutChange = UpstreamsChange | VersionChange | SettingsChange;

/** A change of the upstreams that calls of a model may use: it adds some and drops others. */
export interface UpstreamsChange {
  readonly is: 'upstreams';
  readonly model: string;
  readonly add: readonly string[];
  readonly drop: readonly string[];
  /** Added upstreams come before all others, whatever the strategy. */
  readonly first: boolean;
}

/** A change of the model that an alias means. */
export interface VersionChange {
  readonly is: 'version';
  readonly alias: string;
  readonly model: string;
}

/** A change of the settings of policies in a pipeline. What it does not name stays. */
export interface SettingsChange {
  readonly is: 'settings';
  readonly pipeline: string;
  readonly settings: Readonly<Record<string, object>>;
}

export interface RolloutStage {
  /** The share of accounts, keys or calls (see `stickyBy`) in the treatment group, 0 to 1. */
  readonly share: number;
  readonly holdMs: number;
}

export type GuardName = 'errorRate' | 'p95FirstTokenMs' | 'costRatio';

/** A metric in which the treatment group must not be worse than the control group. */
export interface Guard {
  readonly name: GuardName;
  /** How much worse the treatment group may be: a difference for `errorRate`, otherwise a ratio. */
  readonly tolerance: number;
  /** The number of calls from which on the guard judges. */
  readonly minCalls: number;
}

/** `candidate` is the treatment group; records and metrics publish it by this name. */
export type RolloutGroup = 'control' | 'candidate';

/** How far a running rollout has come. */
export interface RolloutPosition {
  /** The id of this run. A rollout that begins again gets another one. */
  readonly run: string;
  /** Counted from 1. */
  readonly stage: number;
  readonly share: number;
  /** The rollout has passed all its stages, and its groups are no longer compared. */
  readonly isOver: boolean;
}

export function definitionOf({ change, stickyBy }: Pick<Rollout, 'change' | 'stickyBy'>): string {
  return createHash('sha256')
    .update(JSON.stringify([change, stickyBy]))
    .digest('hex')
    .slice(0, 12);
}

/** The group that a call is in. */
export interface Place {
  readonly group: RolloutGroup;
  /** A draw decided the group, not `include` or `exclude`. */
  readonly isDrawn: boolean;
  /** One of `SLOTS` random subsets of the callers. How much these differ shows what chance alone can do. */
  readonly slot: number;
}

export const SLOTS = 32;

/** Returns the group of a call: by `include` and `exclude` if they name its caller, otherwise by a draw. */
export function groupOf(
  { name, stickyBy, include, exclude }: Pick<Rollout, 'name' | 'stickyBy' | 'include' | 'exclude'>,
  share: number,
  { accountId, keyId }: Payer,
  callId: string,
): Place {
  if (exclude.has(accountId) || exclude.has(keyId)) return { group: 'control', isDrawn: false, slot: 0 };
  if (include.has(accountId) || include.has(keyId)) return { group: 'candidate', isDrawn: false, slot: 0 };
  const who = stickyBy === 'account' ? accountId : stickyBy === 'key' ? keyId : callId;
  const digits = drawnFor(name, who);
  return { group: lotIn(digits) < share ? 'candidate' : 'control', isDrawn: true, slot: slotIn(digits) };
}

const HEX_DIGITS = 12;

/** Returns the digits that a caller draws. Its draws in different rollouts are independent. */
function drawnFor(rollout: string, who: string): string {
  return hash('sha256', `${rollout}\n${who}`);
}

/**
 * Returns a number from 0 to below 1, the same on every node and after every start. It does not depend on the share: a caller
 * that is in at 1 % is also in at 5 %.
 */
function lotIn(digits: string): number {
  return Number.parseInt(digits.slice(0, HEX_DIGITS), 16) / 16 ** HEX_DIGITS;
}

/** Returns the slot of a caller. It uses other digits, because the slot must be independent of the lot. */
function slotIn(digits: string): number {
  return Number.parseInt(digits.slice(HEX_DIGITS, HEX_DIGITS + 4), 16) % SLOTS;
}
