/** What the interface answers; docs/console.md. Money is decimal text and stays so. */

export type Usd = string;
export type Time = string;

export interface List<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

export interface SignInWays {
  readonly password: boolean;
  readonly oidc: { readonly name: string; readonly startUrl: string } | null;
}

export interface Session {
  readonly user: { readonly id: string; readonly email: string; readonly passwordChangedAt: Time | null };
  readonly account: { readonly id: string; readonly name: string; readonly status: 'active' | 'frozen' };
  /** Whether people may sign in with a password here. */
  readonly passwordSignIn: boolean;
  readonly csrfToken: string;
  readonly createdAt: Time;
  readonly expiresAt: Time;
}

export interface Price {
  readonly input: Usd;
  readonly output: Usd;
  readonly cacheWrite: Usd;
  readonly cacheWrite1h: Usd;
  readonly cacheRead: Usd;
}

/** As in core/catalog/protocols.ts. */
export type Protocol = 'messages' | 'chat' | 'responses' | 'embeddings';

export interface Model {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly protocols: readonly Protocol[];
  readonly context: number;
  readonly maxOutput: number;
  readonly upstreams: readonly string[];
  readonly pricePerMillion: Price;
}

export interface Upstream {
  readonly name: string;
  readonly tier: string;
  readonly state: 'available' | 'resting' | 'probing' | 'ejected' | 'taken-out' | 'disabled';
  readonly successRate: number | null;
  readonly firstTokenMs: number | null;
  readonly models: readonly string[];
}

export interface Catalog {
  readonly publicUrl: string;
  /** Each may stand behind `publicUrl`. */
  readonly strategies: readonly string[];
  readonly models: readonly Model[];
  readonly upstreams: readonly Upstream[];
}

export interface Day {
  readonly day: string;
  readonly callsUsd: Usd;
  readonly sandboxesUsd: Usd;
  readonly calls: number;
}

export interface Overview extends Catalog {
  readonly balanceUsd: Usd | null;
  readonly heldUsd: Usd | null;
  readonly availableUsd: Usd | null;
  readonly timeZone: string;
  readonly spend: {
    readonly todayUsd: Usd;
    readonly yesterdayUsd: Usd;
    readonly monthUsd: Usd;
    readonly lastMonthUsd: Usd;
    readonly lastMonthToThisDayUsd: Usd;
    readonly days: readonly Day[];
  };
}

/** One run of a model inside a call: what it was, and its counts by meter. */
export interface Pass {
  readonly model?: string;
  readonly tier?: string;
  readonly speed?: string;
  readonly geo?: string;
  readonly [meter: string]: number | string | undefined;
}

export interface UsageRecord {
  readonly requestId: string;
  readonly createdAt: Time;
  readonly keyId: string;
  readonly keyName: string | null;
  readonly protocol: Protocol;
  readonly path: string;
  readonly strategy: string | null;
  readonly modelRequested: string | null;
  readonly model: string | null;
  readonly upstream: string | null;
  readonly attempts: number;
  readonly fallback: boolean;
  readonly stream: boolean;
  readonly status: number;
  readonly source: 'provider' | 'platform';
  readonly errorCode: string | null;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly totalTokens: number | null;
  readonly cacheCreationTokens: number | null;
  readonly cacheReadTokens: number | null;
  readonly cost: Usd;
  readonly billing: 'actual' | 'estimated' | 'released' | 'partial' | 'expired';
  readonly responseTimeMs: number;
  readonly firstTokenMs: number | null;
  readonly configRevision: string;
  readonly passes: readonly Pass[] | null;
  readonly flags: readonly ('unknown' | 'unpriced' | 'suspect' | 'translated')[] | null;
  readonly sessionId: string | null;
  readonly agentId: string | null;
}

export interface Attempt {
  readonly upstream: string;
  readonly outcome: string;
  readonly status: number | null;
  readonly ms: number;
  readonly why: string | null;
}

export interface ExplainedRecord extends UsageRecord {
  readonly routing: {
    readonly of: number;
    readonly candidates: readonly { readonly upstream: string; readonly score: number }[];
    readonly attempts: readonly Attempt[];
  } | null;
  readonly price:
    | (Price & {
        readonly above: (Price & { readonly tokens: number }) | null;
        readonly isCurrent: boolean;
      })
    | null;
}

export interface Percentiles {
  readonly p50: number | null;
  readonly p90: number | null;
  readonly p99: number | null;
}

export interface Totals {
  readonly calls: number;
  readonly failed: number;
  readonly costUsd: Usd;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheCreationTokens: number;
  readonly cacheReadTokens: number;
  readonly totalTokens: number;
  readonly firstTokenMs: Percentiles;
}

export interface SeriesGroup {
  readonly id: string | null;
  readonly name: string;
  readonly calls: readonly number[];
  readonly costUsd: readonly Usd[];
  readonly totalCalls: number;
  readonly totalCostUsd: Usd;
}

export type Interval = 'minute' | 'hour' | 'day' | 'month';

export interface Series {
  readonly timeZone: string;
  readonly interval: Interval;
  readonly from: Time;
  readonly to: Time;
  readonly starts: readonly Time[];
  readonly groups: readonly SeriesGroup[];
  readonly firstTokenMs: Readonly<Record<'p50' | 'p90' | 'p99', readonly (number | null)[]>>;
}

export interface ApiKey {
  readonly id: string;
  readonly name: string;
  readonly prefix: string;
  readonly suffix: string;
  readonly status: 'active' | 'revoked';
  readonly balanceLimit: Usd | null;
  readonly dailyLimit: Usd | null;
  readonly monthlyLimit: Usd | null;
  readonly callsPerMinute: number | null;
  readonly tokensPerMinute: number | null;
  readonly spentUsd: Usd | null;
  readonly heldUsd: Usd | null;
  readonly allowedModels: readonly string[] | null;
  readonly createdAt: Time;
  readonly expiresAt: Time | null;
  readonly allowedAddresses: readonly string[] | null;
  readonly previousSecretUntil: Time | null;
  readonly revokedAt: Time | null;
  readonly lastUsedAt?: Time | null;
}

export type NewApiKey = ApiKey & { readonly key: string };

export type ObservedState = 'PROVISIONING' | 'RUNNING' | 'SUSPENDED' | 'FAILED' | 'TERMINATED' | 'UNKNOWN';

export interface Sandbox {
  readonly id: string;
  readonly offeringId: string;
  readonly offeringName: string;
  readonly observedState: ObservedState;
  readonly desiredState: 'RUNNING' | 'SUSPENDED' | 'TERMINATED' | null;
  readonly lifecyclePhase: string;
  readonly stateVersion: number;
  readonly totalCost: Usd;
  readonly resources: {
    readonly cpu: number;
    readonly memoryGiB: number;
    readonly volumeGiB: number;
    readonly gpu: readonly { readonly model: string; readonly count: number }[];
  };
  readonly reservedUntil: Time | null;
  readonly createdAt: Time;
  readonly terminatedAt: Time | null;
  readonly idempotencyKey: string;
  readonly policy: {
    readonly resumeOnAccess: boolean;
    readonly idleTimeoutSeconds: number | null;
    readonly maxLifetimeSeconds: number | null;
    readonly maxTotalCostUsd: Usd | null;
    readonly onFundsExhausted: 'suspend' | 'terminate';
  };
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly failure: { readonly code: string; readonly message: string } | null;
}

export interface SandboxList {
  readonly items: readonly Sandbox[];
  readonly total: number;
  readonly stateCounts: Readonly<Partial<Record<ObservedState, number>>>;
  readonly page: number;
  readonly pageSize: number;
}

export interface Operation {
  readonly id: string;
  readonly type: string;
  readonly status: 'PENDING' | 'RUNNING' | 'SUCCEEDED' | 'FAILED' | 'CANCELLED';
  readonly cause: string;
  readonly requestedAt: Time;
  readonly startedAt: Time | null;
  readonly endedAt: Time | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly noop: boolean;
}

export interface SandboxEvent {
  readonly id: string;
  readonly sequence: number;
  readonly type: string;
  readonly status: 'PENDING' | 'SUCCEEDED' | 'FAILED';
  readonly previousState: ObservedState | null;
  readonly currentState: ObservedState;
  readonly source: 'caller' | 'supplier' | 'policy' | 'gateway';
  readonly message: string | null;
  readonly createdAt: Time;
}

export interface Segment {
  readonly id: string;
  readonly sequence: number;
  readonly state: 'PROVISIONING' | 'RUNNING' | 'SUSPENDED';
  readonly startsAt: Time;
  readonly endsAt: Time | null;
  readonly status: 'OPEN' | 'SETTLED';
  readonly hourlyUsd: Usd;
  readonly seconds: number | null;
  readonly amount: Usd;
}

export interface Period {
  readonly id: string;
  readonly sequence: number;
  readonly startedAt: Time;
  readonly endedAt: Time | null;
  readonly coversUntil: Time;
  readonly status: 'OPEN' | 'SETTLED';
  readonly reservedAmount: Usd;
  readonly amount: Usd | null;
  readonly settledAt: Time | null;
}

export interface SandboxRecord extends Sandbox {
  readonly offering: {
    readonly name: string;
    readonly supplier: string;
    readonly region: string;
    readonly isolation: string;
    readonly billing: {
      readonly estimatedHourlyUsdByState: Readonly<Record<'PROVISIONING' | 'RUNNING' | 'SUSPENDED', Usd>>;
    };
  };
  readonly operations: readonly Operation[];
  readonly events: readonly SandboxEvent[];
  readonly usageSegments: readonly Segment[];
  readonly billingPeriods: readonly Period[];
  readonly auditCounts: Readonly<Record<'operations' | 'events' | 'usageSegments' | 'billingPeriods', number>>;
}
