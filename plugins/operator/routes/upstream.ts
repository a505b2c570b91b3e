import { PRICE_PER_MILLION, showPrice } from '../../../core/api/show-price';
import { callableIn, type ModelEntry, protocolsOf, TIERS, type Upstream } from '../../../core/catalog/catalog';
import type { Credential } from '../../../core/catalog/credential';
import { PROTOCOL_NAMES, TRANSLATED } from '../../../core/catalog/protocols';
import { REASONING_SETTINGS } from '../../../core/catalog/upstream';
import { fail } from '../../../core/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { type CredentialGauge, RATE_LIMITED } from '../../../core/health/credential-gauge';
import { type DisabledUpstream, listDisabledUpstreams } from '../../../core/health/disabled-upstreams';
import type { UpstreamGauge } from '../../../core/health/gauge';
import type { UpstreamHealth } from '../../../core/health/health';
import { rounded, UPSTREAM_STATES, upstreamState } from '../../../core/health/state';
import { listOf, object, oneOf, orNull, shape } from '../../../core/http/shape';

/** Finds an upstream of the configuration in force. @throws NOT_FOUND */
export function requireUpstream({ catalog }: PluginGateway, name: string | undefined): Upstream {
  const upstream = catalog.upstreams.find((each) => each.name === name);
  if (upstream === undefined) throw fail('NOT_FOUND', { message: 'The upstream does not exist.' });
  return upstream;
}

/** Shows an upstream as it is now. The health is this node's; that an operator disabled the upstream is known to all nodes. */
export async function readUpstream({ database, health }: PluginGateway, upstream: Upstream): Promise<object> {
  return showUpstream(upstream, health, (await listDisabledUpstreams(database)).get(upstream.name));
}

/** Shows an upstream to operators: its configuration, its health on this node, and its prices. */
export function showUpstream(
  upstream: Upstream,
  health: UpstreamHealth,
  disabled: DisabledUpstream | undefined,
): object {
  const gauge = health.upstream(upstream.name);
  const nowMs = health.now();
  const { ejection, latencies } = gauge;
  return {
    name: upstream.name,
    url: upstream.url.href,
    adapters: upstream.adapters.map(({ name }) => name),
    tier: upstream.tier,
    weight: upstream.weight,
    state: upstreamState(upstream, gauge, nowMs),
    disabledReason: upstream.disabled ?? null,
    takenOut:
      disabled === undefined
        ? null
        : { since: disabled.since.toISOString(), by: disabled.actor, reason: disabled.reason ?? null },
    ejectedUntil: toTime(ejection.outUntilMs, nowMs),
    restsUntil: toTime(gauge.restsUntilMs > nowMs ? gauge.restsUntilMs : undefined, nowMs),
    credentials: upstream.credentials.map((each) => showCredential(each, gauge, nowMs)),
    successRate: rounded(1 - gauge.failureRate(nowMs), 3),
    consecutiveFailures: ejection.consecutiveFailures,
    lastFailureAt: toTime(Number.isFinite(gauge.lastFailureMs) ? gauge.lastFailureMs : undefined, nowMs),
    attempts: { answered: gauge.answers, failed: failuresOf(gauge) },
    firstTokenMs: rounded(latencies.stream.value),
    wholeAnswerMs: rounded(latencies.whole.value),
    models: upstream.models.map((model) => ({
      name: model.name,
      aliases: model.aliases,
      ...protocolsIn(upstream, model),
      reasoning: model.reasoning ?? null,
      context: model.context,
      maxOutput: model.maxOutput,
      firstTokenMs: rounded(gauge.models.get(model.name)?.latencies.stream.value),
      wholeAnswerMs: rounded(gauge.models.get(model.name)?.latencies.whole.value),
      pricePerMillion: showPrice(model.price),
    })),
  };
}

/** Shows a credential's name and state, never its value. */
function showCredential(credential: Credential, gauge: UpstreamGauge, nowMs: number): object {
  const { name, weight, missing } = credential;
  const known = gauge.credential(name);
  return {
    name,
    weight,
    state: credentialState(credential, known, nowMs),
    refusedWith: known.refusedWith ?? null,
    restsUntil: toTime(known.restsUntilMs > nowMs ? known.restsUntilMs : undefined, nowMs),
    missing: missing ?? null,
  };
}

const CREDENTIAL_STATES = ['missing', 'refused', 'rate-limited', 'available'] as const;

function credentialState(
  credential: Credential,
  known: CredentialGauge,
  nowMs: number,
): (typeof CREDENTIAL_STATES)[number] {
  if (credential.missing !== undefined) return 'missing';
  if (known.refusedWith === undefined) return 'available';
  if (known.refusedWith !== RATE_LIMITED) return 'refused';
  return known.restsUntilMs > nowMs ? 'rate-limited' : 'available';
}

/** Returns the protocols in which clients reach a model: the upstream's own, and those that are translated. */
function protocolsIn(upstream: Upstream, model: ModelEntry): object {
  const protocols = protocolsOf({ upstream, model });
  return { protocols, translated: callableIn({ upstream, model }).filter((each) => !protocols.includes(each)) };
}

function failuresOf({ failures }: UpstreamGauge): number {
  let all = 0;
  for (const count of failures.values()) all += count;
  return all;
}

/** Converts a moment of the monotonic clock to calendar time. */
function toTime(atMs: number | undefined, nowMs: number): string | null {
  return atMs === undefined ? null : new Date(Date.now() + atMs - nowMs).toISOString();
}

/** The result of `showUpstream` in the OpenAPI document. */
export const UPSTREAM = object({
  name: shape.text,
  url: shape.text,
  adapters: shape.texts,
  tier: oneOf(...TIERS),
  weight: shape.number,
  state: oneOf(...UPSTREAM_STATES),
  disabledReason: orNull(shape.text),
  takenOut: orNull(object({ since: shape.time, by: shape.text, reason: orNull(shape.text) })),
  ejectedUntil: orNull(shape.time),
  restsUntil: orNull(shape.time),
  credentials: listOf(
    object({
      name: shape.text,
      weight: shape.number,
      state: oneOf(...CREDENTIAL_STATES),
      refusedWith: orNull(shape.integer),
      restsUntil: orNull(shape.time),
      missing: orNull(shape.text),
    }),
  ),
  successRate: orNull(shape.number),
  consecutiveFailures: shape.integer,
  lastFailureAt: orNull(shape.time),
  attempts: object({ answered: shape.integer, failed: shape.integer }),
  firstTokenMs: orNull(shape.number),
  wholeAnswerMs: orNull(shape.number),
  models: listOf(
    object({
      name: shape.text,
      aliases: shape.texts,
      protocols: listOf(oneOf(...PROTOCOL_NAMES)),
      translated: listOf(oneOf(...TRANSLATED)),
      reasoning: orNull(oneOf(...REASONING_SETTINGS)),
      context: shape.integer,
      maxOutput: shape.integer,
      firstTokenMs: orNull(shape.number),
      wholeAnswerMs: orNull(shape.number),
      pricePerMillion: PRICE_PER_MILLION,
    }),
  ),
});
