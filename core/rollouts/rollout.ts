import { createHash, hash } from 'node:crypto';
import type { Payer } from '../ledger/ledger';

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

/** Ends a rollout if more of the treatment's calls than of the control's are beyond a line: failed, too slow or too dear. */
export interface Guard {
  readonly name: GuardName;
  /** How much larger the treatment's share of calls beyond the line may be. */
  readonly above: number;
  /** Where the line is, as a multiple of the control's p95 or median; 1 for `errorRate`, which has no such line. */
  readonly times: number;
  /** The number of calls from which on the guard judges. */
  readonly minCalls: number;
}

export type RolloutGroup = 'control' | 'treatment';

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
export interface RolloutAssignment {
  readonly group: RolloutGroup;
  /** A draw decided the group, not `include` or `exclude`. */
  readonly isDrawn: boolean;
}

/** Returns the group of a call: by `include` and `exclude` if they name its caller, otherwise by a draw. */
export function groupOf(
  { name, stickyBy, include, exclude }: Pick<Rollout, 'name' | 'stickyBy' | 'include' | 'exclude'>,
  share: number,
  { accountId, keyId }: Payer,
  callId: string,
): RolloutAssignment {
  if (exclude.has(accountId) || exclude.has(keyId)) return { group: 'control', isDrawn: false };
  if (include.has(accountId) || include.has(keyId)) return { group: 'treatment', isDrawn: false };
  const who = stickyBy === 'account' ? accountId : stickyBy === 'key' ? keyId : callId;
  return { group: lotOf(name, who) < share ? 'treatment' : 'control', isDrawn: true };
}

const HEX_DIGITS = 12;

/**
 * Returns a number from 0 to below 1, the same on every node and after every start. It does not depend on the share: a caller
 * that is in at 1 % is also in at 5 %. A caller's numbers in different rollouts are independent.
 */
function lotOf(rollout: string, who: string): number {
  return Number.parseInt(hash('sha256', `${rollout}\n${who}`).slice(0, HEX_DIGITS), 16) / 16 ** HEX_DIGITS;
}
