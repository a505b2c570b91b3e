import { divideRoundingUp, E14_PER_E8 } from '../base/money';
import { quoted } from '../base/quoted';
import type { RecordedAttempt } from '../catalog/attempt-fields';
import {
  CACHE_READ_METERS,
  CACHE_WRITE_METERS,
  FRESH_METERS,
  outputTokens,
  type Pass,
  tokensOf,
  totalInputTokens,
  type Usage,
} from '../catalog/usage';
import type { RecordedFields } from '../catalog/usage-fields';
import type { KeySettings } from '../ledger/ledger';
import type { Call, CallFields, RoutingFacts } from './call';
import { attemptCostE14, type MadeAttempt, recordedAttempt, recordedPass } from './made-attempt';

/**
 * One row of usage_records, metadata only; docs/contract.md, section 6. The ledger's entry has the cost. The key's name is looked up when a
 * record is read, so that calls need not load it. Times are RFC 3339 with milliseconds, UTC. A member without a value is absent.
 */
export interface UsageRecord extends RecordedFields {
  /** The charged passes (runs of a model), each with its meters; absent if the token counts alone say the same. */
  readonly passes?: readonly Readonly<Record<string, string | number | undefined>>[] | undefined;
  /** Why the counts may be wrong or incomplete, such as `unknown`; absent if there is no doubt. */
  readonly flags?: readonly string[] | undefined;
  /** Why the gateway chose the upstreams of the call; absent if there was one candidate and no retry. */
  readonly routing?: RecordedRouting | undefined;
  /** Every request to an upstream. Each becomes a row in upstream_attempts. */
  readonly made?: readonly RecordedAttempt[] | undefined;
}

/** The usage that is charged, and how certain it is. */
export interface RecordedUsage {
  readonly usage?: Usage;
  readonly billing: UsageRecord['billing'];
  /** Why the usage may be wrong. Default: `unknown` if the request has a member that no request table in `core/protocols` lists. */
  readonly flags?: readonly string[];
  readonly excessE8?: bigint;
}

type RecordedRouting = Pick<RoutingFacts, 'candidates' | 'of' | 'attempts'> &
  Partial<Pick<RoutingFacts, 'clientRetry' | 'intent' | 'excluded'>>;

type Recordable = Pick<Call, 'id' | 'createdAt' | 'startedMs' | 'protocol' | 'path' | 'facts'> &
  Partial<Pick<CallFields, 'key' | 'request'>>;

/** The members of a record that are known when the hold is made. The end of the call adds all other members. */
type HeldMember =
  | 'requestId'
  | 'createdAt'
  | 'accountId'
  | 'keyId'
  | 'protocol'
  | 'path'
  | 'modelRequested'
  | 'stream'
  | 'configRevision'
  | 'sessionId'
  | 'agentId'
  | 'endUserId'
  | 'teamId'
  | 'memberId'
  | 'tags'
  | 'demands';
type EndOfRecord = Omit<UsageRecord, HeldMember>;

/** Returns the usage record of a call as it is now, with the team and the member of these settings. A call without a valid key has no record. */
export function usageRecord(
  call: Recordable,
  recorded: RecordedUsage,
  configRevision: string,
  settings?: KeySettings,
): UsageRecord {
  const facts = JSON.parse(factsOfHold(call, configRevision, settings)) as Pick<UsageRecord, HeldMember>;
  return { ...facts, ...endOfRecord(call, recorded) };
}

/**
 * Returns the usage record as JSON for a call whose hold stored `facts`. The member `routing` may occur twice in the text; JSON parsers
 * then use the last one.
 */
export function recordAfterHold(facts: string, call: Recordable, recorded: RecordedUsage): string {
  return `${facts.slice(0, -1)},${JSON.stringify(endOfRecord(call, recorded)).slice(1)}`;
}

function endOfRecord(
  { facts, request, startedMs }: Recordable,
  { usage, billing, flags: given, excessE8 = 0n }: RecordedUsage,
): EndOfRecord {
  const flags = given ?? (request === undefined || request.reading.unknownMembers.length === 0 ? [] : ['unknown']);
  const output = usage && outputTokens(usage);
  const made = facts.made.length === 0 ? undefined : facts.made.map((each) => recordedAttempt(each));
  return {
    strategy: facts.strategy,
    model: facts.model,
    upstream: facts.upstream,
    region: facts.region,
    attempts: facts.attempts,
    fallback: facts.fallback,
    status: facts.status,
    source: facts.source,
    errorCode: facts.errorCode,
    inputTokens: usage && tokensOf(usage, FRESH_METERS),
    outputTokens: output,
    totalTokens: usage && totalInputTokens(usage) + (output ?? 0),
    cacheCreationTokens: usage && (tokensOf(usage, CACHE_WRITE_METERS) ?? 0),
    cacheReadTokens: usage && (tokensOf(usage, CACHE_READ_METERS) ?? 0),
    passes: usage && passesOf(usage),
    flags: flags.length === 0 ? undefined : flags,
    excessE8: excessE8 === 0n ? undefined : excessE8.toString(),
    upstreamCostE8: made && upstreamCostOf(facts.made),
    billing,
    responseTimeMs: Math.round(performance.now() - startedMs),
    firstTokenMs: facts.firstTokenMs,
    routing: routingOf(facts.routing),
    rollout: facts.rollout?.name,
    rolloutStage: facts.rollout?.stage,
    rolloutGroup: facts.rollout?.group,
    made,
  };
}

/**
 * Returns as JSON what is known of a call before its end. It is the beginning of its usage record, and the whole record if the hold expires.
 * `settings` are those of the call's key, which name its team and member.
 */
export function factsOfHold(call: Recordable, configRevision: string, settings = call.key?.settings): string {
  const { facts, key, request } = call;
  const { intent } = facts.routing;
  // Members whose values contain only safe characters are written without JSON encoding. This saves time, because this text is written for each call
  // and rarely read.
  let text = `{"requestId":"${call.id}","createdAt":"${call.createdAt}"`;
  if (key !== undefined) text += `,"accountId":${JSON.stringify(key.accountId)},"keyId":${JSON.stringify(key.keyId)}`;
  text += `,"protocol":"${call.protocol}","path":${quoted(call.path)}`;
  if (request !== undefined) text += `,"modelRequested":${JSON.stringify(request.modelRequested)}`;
  text += `,"stream":${request?.stream ?? false},"configRevision":${quoted(configRevision)}`;
  if (facts.sessionId !== undefined) text += `,"sessionId":${JSON.stringify(facts.sessionId)}`;
  if (facts.agentId !== undefined) text += `,"agentId":${JSON.stringify(facts.agentId)}`;
  if (facts.endUserId !== undefined) text += `,"endUserId":${JSON.stringify(facts.endUserId)}`;
  if (settings?.teamId !== undefined) text += `,"teamId":${JSON.stringify(settings.teamId)}`;
  if (settings?.memberId !== undefined) text += `,"memberId":${JSON.stringify(settings.memberId)}`;
  if (facts.tags !== undefined) text += `,"tags":${JSON.stringify(facts.tags)}`;
  if (facts.demands !== undefined) text += `,"demands":${JSON.stringify(facts.demands.text)}`;
  if (intent !== undefined) text += `,"routing":${JSON.stringify({ candidates: [], of: 0, attempts: [], intent })}`;
  return `${text}}`;
}

function upstreamCostOf(made: readonly MadeAttempt[]): string {
  let costE14 = 0n;
  for (const each of made) costE14 += attemptCostE14(each);
  return divideRoundingUp(costE14, E14_PER_E8).toString();
}

/**
 * Returns the model runs (passes) of the call. Returns undefined for a single run of the requested model at its normal price, because other
 * columns of the record describe that run.
 */
function passesOf({ passes }: Usage): UsageRecord['passes'] {
  const [first, ...others] = passes;
  if (first === undefined || (others.length === 0 && isPlain(first))) return undefined;
  return passes.map(recordedPass);
}

const PLAIN_METERS = new Set<string>(['input', 'output', 'cacheRead', 'cacheWrite']);

function isPlain({ model, tier, speed, geo, counts }: Pass): boolean {
  if (model !== undefined || tier !== undefined || speed !== undefined || geo !== undefined) return false;
  for (const [meter, count] of counts) if (count !== 0 && !PLAIN_METERS.has(meter)) return false;
  return true;
}

/** Returns the routing to record; undefined if there was one candidate, at most one attempt, no client retry and no Idempotency-Key. */
function routingOf(routing: RoutingFacts): UsageRecord['routing'] {
  const { candidates, of, attempts, clientRetry, intent, excluded } = routing;
  const isNoted = clientRetry !== undefined || intent !== undefined || excluded !== undefined;
  const isPlain = of < 2 && attempts.length < 2 && !isNoted;
  return isPlain ? undefined : { candidates, of, attempts, clientRetry, intent, excluded };
}
