import { createHash, hash } from 'node:crypto';
import type { Payer } from '../ledger/payer';

/** A change that goes out in stages: some calls are served with it, the others as before, until all are or none. */
export interface Rollout {
  readonly name: string;
  readonly change: RolloutChange;
  /** Whose calls are served alike. */
  readonly stickyBy: 'account' | 'key' | 'request';
  /** Ids of accounts and keys that are in from the first stage on, and of those that never are. */
  readonly include: ReadonlySet<string>;
  readonly exclude: ReadonlySet<string>;
  readonly stages: readonly [RolloutStage, ...RolloutStage[]];
  readonly guards: readonly Guard[];
  /** Share of the control group's calls, 0 to 1, that are mirrored to the treatment, which does not answer them. */
  readonly shadow: number;
  readonly onAbort: 'rollback' | 'hold';
  /** Changes with what goes out and who is served alike: a rollout of another definition begins anew. */
  readonly definition: string;
}

export type RolloutChange = UpstreamsChange | VersionChange | SettingsChange;

/** Calls of a model may ask upstreams they may not otherwise, and others no more. */
export interface UpstreamsChange {
  readonly is: 'upstreams';
  readonly model: string;
  readonly add: readonly string[];
  readonly drop: readonly string[];
  /** Those that are added come before all others, whatever the strategy. */
  readonly first: boolean;
}

/** An alias means another model. */
export interface VersionChange {
  readonly is: 'version';
  readonly alias: string;
  readonly model: string;
}

/** Policies of a pipeline have other settings; those that are not named stay. */
export interface SettingsChange {
  readonly is: 'settings';
  readonly pipeline: string;
  readonly settings: Readonly<Record<string, object>>;
}

export interface RolloutStage {
  /** 0 to 1. */
  readonly share: number;
  readonly holdMs: number;
}

export type GuardName = 'errorRate' | 'p95FirstTokenMs' | 'costRatio';

/** In what the treatment group may not be worse than the control group. */
export interface Guard {
  readonly name: GuardName;
  /** So much worse it may be: a difference of rates, else a ratio. */
  readonly tolerance: number;
  /** It does not judge before. */
  readonly minCalls: number;
}

/** `candidate` is the treatment group; records and metrics publish it by this name. */
export type RolloutGroup = 'control' | 'candidate';

/** How far a rollout that is under way has come. */
export interface RolloutPosition {
  /** Of this rollout since it last began. */
  readonly run: string;
  /** From 1. */
  readonly stage: number;
  readonly share: number;
  /** It has gone through all its stages: nothing is compared any more. */
  readonly isOver: boolean;
}

export function definitionOf({ change, stickyBy }: Pick<Rollout, 'change' | 'stickyBy'>): string {
  return createHash('sha256')
    .update(JSON.stringify([change, stickyBy]))
    .digest('hex')
    .slice(0, 12);
}

/** In which group a call is. */
export interface Place {
  readonly group: RolloutGroup;
  /** Drawn, and not said by a list. */
  readonly isDrawn: boolean;
  /** One of `SLOTS`, of callers that have nothing in common: how much they differ tells what chance can do. */
  readonly slot: number;
}

export const SLOTS = 32;

/** Returns the group of a call: by the lists, otherwise by a draw. */
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

/** A caller's draws in different rollouts are independent. */
function drawnFor(rollout: string, who: string): string {
  return hash('sha256', `${rollout}\n${who}`);
}

/**
 * From 0 to below 1, the same on every node and at every start. A caller's lot does not change with the share: who is in at 1 % is
 * in at 5 %.
 */
function lotIn(digits: string): number {
  return Number.parseInt(digits.slice(0, HEX_DIGITS), 16) / 16 ** HEX_DIGITS;
}

/** Of other digits: it says nothing of the lot. */
function slotIn(digits: string): number {
  return Number.parseInt(digits.slice(HEX_DIGITS, HEX_DIGITS + 4), 16) % SLOTS;
}
