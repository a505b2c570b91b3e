import type { Call, CallFields, RoutingFacts } from './call';
import { totalInputTokens } from './price';
import type { UsageRecord } from './refused-calls';
import type { Usage } from './usage';

type Recordable = Pick<Call, 'id' | 'createdAt' | 'startedMs' | 'protocol' | 'path' | 'facts'> &
  Partial<Pick<CallFields, 'key' | 'request'>>;

/** The record of a call as it stands now. A call has a record only once a key has been shown. */
export function usageRecord(
  call: Recordable,
  {
    usage,
    billing,
    configRevision,
  }: { usage?: Usage | undefined; billing: UsageRecord['billing']; configRevision: string },
): UsageRecord {
  const { facts, key, request } = call;
  return {
    requestId: call.id,
    createdAt: call.createdAt,
    accountId: key?.accountId ?? '',
    keyId: key?.keyId ?? '',
    protocol: call.protocol,
    path: call.path,
    strategy: facts.strategy,
    modelRequested: request?.modelRequested,
    model: facts.model,
    upstream: facts.upstream,
    attempts: facts.attempts,
    fallback: facts.fallback,
    stream: request?.stream ?? false,
    status: facts.status,
    source: facts.source,
    errorCode: facts.errorCode,
    inputTokens: usage?.inputTokens,
    outputTokens: usage?.outputTokens,
    totalTokens: usage && totalInputTokens(usage) + (usage.outputTokens ?? 0),
    cacheCreationTokens: usage && (usage.cacheWriteTokens ?? 0) + (usage.cacheWrite1hTokens ?? 0),
    cacheReadTokens: usage && (usage.cacheReadTokens ?? 0),
    billing,
    responseTimeMs: Math.round(performance.now() - call.startedMs),
    firstTokenMs: facts.firstTokenMs,
    configRevision,
    routing: routingOf(facts.routing),
    rollout: facts.rollout?.name,
    rolloutStage: facts.rollout?.stage,
    rolloutArm: facts.rollout?.arm,
  };
}

/** Nothing is kept where there was nothing to decide. */
function routingOf({ candidates, of, attempts }: RoutingFacts): UsageRecord['routing'] {
  return of < 2 && attempts.length < 2 ? undefined : { candidates, of, attempts };
}
