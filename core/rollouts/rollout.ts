import { createHash, hash } from 'node:crypto';
import type { Payer } from '../ledger/ledger';

/** A change that is released in stages. A growing share of the calls is served with the change, until all calls are, or the rollout is aborted. */
export interface Rollout {
  readonly name: string;
  readonly change: RolloutChange;
  /** Which calls share a group: all calls of an account, all calls of a key, or none (`request`). */
  readonly stickyBy: 'account' | 'key' | 'request';
  /** Ids of accounts and keys that are in the treatment from the first stage on (`include`), or never (`exclude`). */
  readonly include: ReadonlySet<string>;
  readonly exclude: ReadonlySet<string>;
  readonly stages: readonly [RolloutStage, ...RolloutStage[]];
  readonly guards: readonly Guard[];
  /** Share of the control group's calls, 0 to 1, that are mirrored to the treatment. The client never receives a mirrored answer. */
  readonly shadow: number;
  readonly onAbort: 'rollback' | 'hold';
  /** A hash of `change` and `stickyBy`. If the hash changes, the rollout starts again. */
  readonly definition: string;
}

export type RolloutChange = UpstreamsChange | VersionChange | SettingsChange;

/** A change of the upstreams that calls of a model may use: it adds some and drops others. */
export interface UpstreamsChange {
  readonly kind: 'upstreams';
  readonly model: string;
  readonly add: readonly string[];
  readonly drop: readonly string[];
  /** Whether added upstreams come before all others, whatever the strategy. */
  readonly first: boolean;
}

/** A change of the model that an alias means. */
export interface VersionChange {
  readonly kind: 'version';
  readonly alias: string;
  readonly model: string;
}

/** A change of policy settings in a pipeline. Settings that it does not name stay unchanged. */
export interface SettingsChange {
  readonly kind: 'settings';
  readonly pipeline: string;
  readonly settings: Readonly<Record<string, object>>;
}

export interface RolloutStage {
  /** The share of accounts, keys or calls (see `stickyBy`) in the treatment group, 0 to 1. */
  readonly share: number;
  readonly holdMs: number;
}

export type GuardName = 'errorRate' | 'p95FirstTokenMs' | 'costRatio';

/** Aborts a rollout if a larger share of the treatment's calls than of the control's failed, was too slow or too expensive. */
export interface Guard {
  readonly name: GuardName;
  /** How much the share of failed, slow or expensive calls in the treatment may exceed the share in the control. */
  readonly above: number;
  /** The latency or cost above which a call is slow or expensive: a multiple of the control's p95 or median; 1 for `errorRate`, which has no threshold. */
  readonly times: number;
  /** The minimum number of calls in each group before this guard compares the groups and can abort the rollout. */
  readonly minCalls: number;
}

export type RolloutGroup = 'control' | 'treatment';

/** The progress of a running rollout. */
export interface RolloutPosition {
  /** The id of one run of the rollout. A rollout that starts again gets a new id. */
  readonly run: string;
  /** The number of the current stage, counted from 1. */
  readonly stage: number;
  readonly share: number;
  /** Whether the rollout has passed all its stages. Its groups are then no longer compared. */
  readonly isOver: boolean;
}

export function definitionOf({ change, stickyBy }: Pick<Rollout, 'change' | 'stickyBy'>): string {
  return createHash('sha256')
    .update(JSON.stringify([change, stickyBy]))
    .digest('hex')
    .slice(0, 12);
}

/** The group of a rollout (`treatment` or `control`) that a call belongs to. */
export interface RolloutAssignment {
  readonly group: RolloutGroup;
  /** Whether the group was chosen at random, instead of by `include` or `exclude`. */
  readonly isDrawn: boolean;
}

/**
 * Returns the group of a call. `include` and `exclude` decide if they name the call's account or key. Otherwise the group is random, in
 * proportion to `share`.
 */
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
 * Returns a number of at least 0 and below 1 for a caller, the same on every node and after every start. It does not depend on the share of
 * the treatment: a caller in the treatment at 1 % is also in it at 5 %. A caller's numbers in different rollouts are independent.
 */
function lotOf(rollout: string, who: string): number {
  return Number.parseInt(hash('sha256', `${rollout}\n${who}`).slice(0, HEX_DIGITS), 16) / 16 ** HEX_DIGITS;
}
