import type { UsageRecord as OwnRecord, Sandbox as OwnSandbox, Price, Protocol, Time, Usd } from '../shapes';

/** What the admin API answers, as `GET /admin/v1/openapi.json` says it: what the pages show of it. */

export type Role = 'metrics' | 'read' | 'write' | 'owner';

export interface Session {
  readonly operator: { readonly name: string; readonly role: Role };
  readonly csrfToken: string;
  readonly createdAt: Time;
  readonly expiresAt: Time;
}

export interface Minute {
  readonly start: Time;
  readonly calls: number;
  readonly failed: number;
  readonly costUsd: Usd;
  readonly p99Ms: number | null;
}

export interface Now {
  readonly at: Time;
  readonly lately: Minute;
  readonly minutes: readonly Minute[];
  readonly heldUsd: Usd | null;
  readonly outbox: { readonly oldestSeconds: number; readonly memoryShare: number };
}

export interface Upstream {
  readonly name: string;
  readonly url: string;
  readonly adapters: readonly string[];
  readonly tier: string;
  readonly weight: number;
  readonly state: 'available' | 'resting' | 'probing' | 'ejected' | 'taken-out' | 'disabled';
  readonly disabledReason: string | null;
  readonly takenOut: { readonly since: Time; readonly by: string; readonly reason: string | null } | null;
  readonly ejectedUntil: Time | null;
  readonly restsUntil: Time | null;
  readonly credentials: readonly {
    readonly name: string;
    readonly weight: number;
    readonly state: 'missing' | 'refused' | 'rate-limited' | 'available';
    readonly refusedWith: number | null;
    readonly restsUntil: Time | null;
    readonly missing: string | null;
  }[];
  readonly successRate: number | null;
  readonly consecutiveFailures: number;
  readonly lastFailureAt: Time | null;
  readonly attempts: { readonly answered: number; readonly failed: number };
  readonly firstTokenMs: number | null;
  readonly wholeAnswerMs: number | null;
  readonly models: readonly {
    readonly name: string;
    readonly protocols: readonly Protocol[];
    readonly firstTokenMs: number | null;
    readonly wholeAnswerMs: number | null;
    readonly pricePerMillion: Price;
  }[];
}

export interface Tested {
  readonly model: string;
  readonly protocol: Protocol;
  readonly ok: boolean;
  readonly status: number | null;
  readonly ms: number;
  readonly problem: string | null;
}

/** A vendor's report beside the records. */
export interface Comparison {
  readonly from: string;
  readonly to: string;
  readonly isAlarm: boolean;
  readonly costs: readonly {
    readonly day: string;
    readonly reportedUsd: Usd;
    readonly recordedUsd: Usd;
    readonly differenceUsd: Usd;
    readonly chargedUsd: Usd;
    readonly isAlarm: boolean;
  }[];
  readonly counts: readonly {
    readonly day: string;
    readonly model: string;
    readonly meter: string;
    readonly reported: number;
    readonly recorded: number;
    readonly difference: number;
  }[];
}

export interface RolloutCounts {
  readonly calls: number;
  readonly errors: number;
  readonly errorRate: number | null;
  readonly callersHurt: number;
  readonly p95FirstTokenMs: number | null;
  readonly p95WholeMs: number | null;
  readonly costUsd: Usd;
  readonly meanCostUsd: Usd | null;
}

export type Group = 'control' | 'candidate' | 'shadow';

export interface Rollout {
  readonly name: string;
  readonly change: string;
  readonly stickyBy: 'account' | 'key' | 'request';
  readonly status: 'not begun' | 'running' | 'paused' | 'held' | 'rolled-back' | 'completed';
  readonly stage: number;
  readonly share: number;
  readonly stageSince: Time | null;
  readonly stageEndsAt: Time | null;
  readonly waitsFor: string | null;
  readonly reason: string | null;
  readonly changedAt: Time | null;
  readonly stages: readonly { readonly share: number; readonly holdSeconds: number }[];
  readonly guards: readonly { readonly name: string; readonly tolerance: number; readonly minCalls: number }[];
  readonly shadow: number;
  readonly inStage: Readonly<Record<Group, RolloutCounts>>;
  readonly inAll: Readonly<Record<Group, RolloutCounts>>;
}

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly status: 'active' | 'frozen';
  readonly createdAt: Time;
  readonly balanceUsd: Usd | null;
  readonly heldUsd: Usd | null;
  readonly availableUsd: Usd | null;
  readonly excessUsd: Usd;
  readonly markup: string | null;
}

/** A token of an operator. */
export interface Token {
  readonly id: string;
  readonly name: string;
  readonly role: Role;
  readonly suffix: string;
  readonly createdAt: Time;
  readonly expiresAt: Time | null;
  readonly revokedAt: Time | null;
  readonly lastUsedAt: Time | null;
}

export type NewToken = Token & { readonly token: string };

export type UsageRecord = OwnRecord & { readonly accountId: string };

export interface User {
  readonly id: string;
  readonly email: string;
  readonly status: 'active' | 'disabled';
  readonly createdAt: Time;
}

/** What a configuration, or a request, has wrong. */
export interface Problem {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
}

export interface ConfigNode {
  readonly node: string;
  readonly name: string;
  readonly startedAt: Time;
  readonly seenAt: Time;
  readonly source: 'file' | 'database';
  readonly number: number | null;
  readonly revision: string;
  readonly since: Time;
  readonly restartNeeded: readonly string[];
  readonly failure: { readonly at: Time; readonly number: number | null; readonly problems: readonly Problem[] } | null;
}

export interface ConfigStatus {
  readonly source: 'file' | 'database';
  readonly newest: { readonly number: number; readonly revision: string } | null;
  readonly nodes: readonly ConfigNode[];
}

export interface Revision {
  readonly number: number;
  readonly revision: string;
  readonly createdAt: Time;
  readonly actor: string;
  readonly note: string | null;
  readonly restores: number | null;
}

export interface ConfigChange {
  readonly applied: boolean;
  readonly number: number | null;
  readonly newest: number;
  readonly revision: string;
  readonly changes: readonly { readonly what: string; readonly before: string | null; readonly after: string | null }[];
  readonly warnings: readonly Problem[];
  readonly objections: readonly string[];
}

export type Sandbox = Omit<OwnSandbox, 'metadata' | 'idempotencyKey'> & {
  readonly accountId: string;
  readonly supplier: string;
  readonly place: string | null;
};

export interface Orphan {
  readonly id: string;
  readonly supplier: string;
  readonly place: string | null;
  readonly name: string;
  readonly sandboxId: string | null;
  readonly reason: string;
  readonly attempts: number;
  readonly foundAt: Time;
  readonly removedAt: Time | null;
}

export interface SandboxPlace {
  readonly id: string;
  readonly supplier: string;
  readonly host: string;
  readonly seenAt: Time;
  readonly silent: boolean;
  readonly lostAt: Time | null;
  readonly activeSandboxes: number;
}

export interface Violation {
  readonly invariant: string;
  readonly holds: string;
  readonly accountId: string | null;
  readonly keyId: string | null;
  readonly rid: string | null;
  readonly expected: string;
  readonly found: string;
  readonly repair: 'expired' | 'credit_sent' | 'charge_credited' | null;
}

export interface Verified {
  readonly items: readonly Violation[];
  readonly nextCursor: string | null;
  readonly accounts: number;
  readonly entries: number;
}

/** A charge that took less than was due. */
export interface Shortfall {
  readonly accountId: string;
  readonly keyId: string | null;
  readonly rid: string;
  readonly createdAt: Time;
  readonly dueUsd: Usd;
  readonly chargedUsd: Usd;
  readonly shortfallUsd: Usd;
}

export interface Change {
  readonly id: string;
  readonly createdAt: Time;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  readonly before: Readonly<Record<string, unknown>> | null;
  readonly after: Readonly<Record<string, unknown>> | null;
}
