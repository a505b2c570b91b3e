/** Usage records of calls that were refused before a reservation: a bounded, best-effort batch; money never depends on it. */
export interface RefusedCalls {
  add(record: UsageRecord): void;
  close(): Promise<void>;
}

/**
 * One row of usage_records, metadata only; contract section 6. `cost` is not here: the ledger's entry has it. Nor is the key's
 * name: it is looked up when records are read, so that nothing on a call's path has to know it. Times are
 * RFC 3339 with milliseconds, UTC.
 */
export interface UsageRecord {
  readonly requestId: string;
  readonly createdAt: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly protocol: string;
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
  readonly billing: 'actual' | 'estimated' | 'released' | 'partial' | 'expired';
  readonly responseTimeMs: number;
  readonly firstTokenMs: number | null;
  readonly configRevision: string;
}
