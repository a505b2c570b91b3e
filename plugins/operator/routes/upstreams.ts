import { TEXT } from '../../../core/api/fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { PRICE_PER_MILLION, showPrice } from '../../../core/api/show-price';
import { fail, invalidParam } from '../../../core/base/errors';
import { type MadeAttempt, recordedAttempt } from '../../../core/calls/made-attempt';
import { callableIn, type ModelEntry, protocolsOf, TIERS, type Upstream } from '../../../core/catalog/catalog';
import { FACTS, showFacts } from '../../../core/catalog/facts';
import { PROTOCOL_NAMES, type Protocol, TRANSLATED } from '../../../core/catalog/protocols';
import { askedWith, type Credential, REASONING_SETTINGS } from '../../../core/catalog/upstream';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { type CredentialGauge, chooseCredential, RATE_LIMITED } from '../../../core/health/credentials';
import {
  type DisabledUpstream,
  disableUpstream,
  enableUpstream,
  listDisabledUpstreams,
} from '../../../core/health/disabled-upstreams';
import type { UpstreamGauge } from '../../../core/health/gauge';
import type { UpstreamHealth } from '../../../core/health/health';
import { rounded, UPSTREAM_STATES, upstreamState } from '../../../core/health/state';
import { newRequestId } from '../../../core/http/http';
import { listOf, object, oneOf, orNull, pageShape, shape } from '../../../core/http/shape';
import { insertAttempts } from '../../../core/ledger/outbox/rows';
import { writeAudit } from '../../../core/storage/audit';
import { callUpstream, type Speaking } from '../call-upstream';
import { recordUpstream } from '../record-upstream';

/** Finds an upstream of the configuration in force. @throws NOT_FOUND */
function requireUpstream({ catalog }: PluginGateway, name: string | undefined): Upstream {
  const upstream = catalog.upstreams.find((each) => each.name === name);
  if (upstream === undefined) throw fail('NOT_FOUND', { message: 'The upstream does not exist.' });
  return upstream;
}

/** Shows the current state of an upstream. Its health is that of this node; whether an operator disabled it is the same on all nodes. */
async function readUpstream({ database, health }: PluginGateway, upstream: Upstream): Promise<object> {
  return showUpstream(upstream, health, (await listDisabledUpstreams(database)).get(upstream.name));
}

/** Shows an upstream to operators: its configuration, its health on this node, and its prices. */
function showUpstream(upstream: Upstream, health: UpstreamHealth, disabled: DisabledUpstream | undefined): object {
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
      facts: showFacts(upstream, model),
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

/** Returns the protocols in which clients reach a model: the upstream's own, and those that the gateway translates. */
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
const UPSTREAM = object({
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
      facts: FACTS,
      pricePerMillion: PRICE_PER_MILLION,
    }),
  ),
});

/** The fields that choose the upstream's model, protocol and credential for an operator's call. */
const ASKED = {
  type: 'object',
  additionalProperties: false,
  properties: { model: TEXT, protocol: { enum: PROTOCOL_NAMES }, credential: TEXT },
  example: { model: 'demo-model', protocol: 'messages' },
} as const;

interface ProbeTarget {
  readonly model: ModelEntry;
  readonly speaking: Speaking;
}

/** Returns the named model and protocol; by default the upstream's cheapest model in the first of its protocols. */
function findProbeTarget(upstream: Upstream, named: string | undefined, wanted: Protocol | undefined): ProbeTarget {
  const { name, adapters, disabled, models } = upstream;
  if (disabled !== undefined) throw fail('CONFLICT', { message: `The upstream "${name}" is disabled: ${disabled}.` });
  const meant = models.filter((each) => named === undefined || each.name === named);
  if (meant.length === 0) throw invalidParam('model', `"${name}" has ${models.map((each) => each.name).join(', ')}`);
  for (const adapter of adapters) {
    for (const protocol of adapter.protocols) {
      if (wanted !== undefined && protocol !== wanted) continue;
      const serving = meant.filter((model) => protocolsOf({ upstream, model }).includes(protocol));
      const model = cheapestOf(serving);
      if (model !== undefined) return { model, speaking: { adapter, protocol } };
    }
    const model = adapter.own === undefined ? undefined : cheapestOf(meant);
    if (model !== undefined) return { model, speaking: { adapter, protocol: wanted ?? 'chat' } };
  }
  throw invalidParam('protocol', `"${named ?? name}" does not speak it`);
}

/** Returns the named credential; by default one that calls would use now. */
function findCredential({ health }: PluginGateway, upstream: Upstream, named: string | undefined): Credential {
  if (named === undefined) return chooseCredential(upstream, health, { session: undefined });
  const { name, credentials } = upstream;
  const meant = credentials.find((each) => each.name === named);
  if (meant !== undefined) return meant;
  throw invalidParam('credential', `"${name}" has ${credentials.map((each) => each.name).join(', ')}`);
}

function cheapestOf(models: readonly ModelEntry[]): ModelEntry | undefined {
  const [cheapest] = [...models].sort((one, two) => Number(one.price.rates.output - two.price.rates.output));
  return cheapest;
}

const DISABLE = {
  type: 'object',
  additionalProperties: false,
  properties: { reason: TEXT },
  example: { reason: 'maintenance until noon' },
} as const;

const TESTED = object({
  upstream: shape.text,
  model: shape.text,
  protocol: oneOf(...PROTOCOL_NAMES),
  ok: shape.yes,
  status: orNull(shape.integer),
  ms: shape.integer,
  problem: orNull(shape.text),
});

const RECORDED = object({
  upstream: shape.text,
  model: shape.text,
  protocol: oneOf(...PROTOCOL_NAMES),
  files: listOf(object({ name: shape.text, content: shape.text })),
  problem: orNull(shape.text),
});

/** Records the real calls that an operator made: an audit row, and the attempts for which the vendor may charge. */
async function noteCalls(
  database: PluginGateway['database'],
  actor: string,
  action: 'upstream.test' | 'upstream.record',
  { name }: Upstream,
  after: object,
  made: readonly MadeAttempt[],
): Promise<void> {
  await database.transaction((transaction) =>
    writeAudit(transaction, { actor, action, subject: `upstream:${name}`, after: { ...after } }),
  );
  const attempts = made.map((each, index) => recordedAttempt(each, index));
  await insertAttempts(database, [{ requestId: newRequestId(), accountId: null, made: attempts }]);
}

const SHOWN = { 200: { description: 'The upstream.', schema: UPSTREAM } };

export function upstreamRoutes(gateway: PluginGateway): readonly Route[] {
  const { database, egress, health } = gateway;
  return [
    adminRoute('GET /admin/v1/upstreams', {
      role: 'read',
      summary: 'Every upstream with its health, its prices and whether it is disabled or ejected.',
      answers: { 200: { description: 'All upstreams.', schema: pageShape(UPSTREAM) } },
      handle: async () => {
        const disabled = await listDisabledUpstreams(database);
        const items = gateway.catalog.upstreams.map((each) => showUpstream(each, health, disabled.get(each.name)));
        return { items, nextCursor: null };
      },
    }),
    adminRoute('GET /admin/v1/upstreams/{name}', {
      role: 'read',
      summary: 'One upstream.',
      answers: SHOWN,
      handle: async ({ params }) => readUpstream(gateway, requireUpstream(gateway, params.name)),
    }),
    adminRoute('POST /admin/v1/upstreams/{name}/disable', {
      role: 'write',
      summary: 'Disable an upstream on every node until it is enabled.',
      body: DISABLE,
      answers: SHOWN,
      handle: async ({ body: { reason }, params, operator }) => {
        const upstream = requireUpstream(gateway, params.name);
        await disableUpstream(gateway, upstream.name, { actor: operator.actor, reason });
        return readUpstream(gateway, upstream);
      },
    }),
    adminRoute('POST /admin/v1/upstreams/{name}/enable', {
      role: 'write',
      summary: 'Enable an upstream that an operator disabled, and end its ejection.',
      answers: SHOWN,
      handle: async ({ params, operator }) => {
        const upstream = requireUpstream(gateway, params.name);
        await enableUpstream(gateway, upstream.name, operator.actor);
        return readUpstream(gateway, upstream);
      },
    }),
    adminRoute('POST /admin/v1/upstreams/{name}/test', {
      role: 'write',
      summary: 'Make one small real call to an upstream and report the result.',
      body: ASKED,
      answers: { 200: { description: 'The result.', schema: TESTED } },
      errors: ['CONFLICT'],
      handle: async ({ body, params, operator }) => {
        const upstream = requireUpstream(gateway, params.name);
        const { model, speaking } = findProbeTarget(upstream, body.model, body.protocol);
        const at = askedWith(upstream, findCredential(gateway, upstream, body.credential));
        const { result, made } = await callUpstream(egress, at, model, speaking);
        const { ok, status, problem } = result;
        const after = { model: result.model, ok, status, problem };
        await noteCalls(database, operator.actor, 'upstream.test', upstream, after, [made]);
        return result;
      },
    }),
    adminRoute('POST /admin/v1/upstreams/{name}/record', {
      role: 'write',
      summary:
        'Make three small real calls to an upstream and return its answers, without secrets and ids of the account.',
      body: ASKED,
      answers: { 200: { description: 'The files of a folder of recordings.', schema: RECORDED } },
      errors: ['CONFLICT'],
      handle: async ({ body, params, operator }) => {
        const upstream = requireUpstream(gateway, params.name);
        const { model, speaking } = findProbeTarget(upstream, body.model, body.protocol);
        if (speaking.adapter.own !== undefined)
          throw invalidParam(
            'protocol',
            `"${upstream.name}" has its own dialect, whose answers must be recorded by hand`,
          );
        const at = askedWith(upstream, findCredential(gateway, upstream, body.credential));
        const { made, files, problem } = await recordUpstream(egress, at, model, speaking);
        const after = { model: model.name, ok: problem === null, problem };
        await noteCalls(database, operator.actor, 'upstream.record', upstream, after, made);
        return { upstream: upstream.name, model: model.name, protocol: speaking.protocol, files, problem };
      },
    }),
  ];
}
