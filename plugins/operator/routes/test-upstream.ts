import { TEXT } from '../../../core/api/fields';
import type { Route } from '../../../core/api/route';
import { recordedAttempt } from '../../../core/calls/made-attempt';
import { type ModelEntry, protocolsOf, type Upstream } from '../../../core/catalog/catalog';
import { askedWith, type Credential } from '../../../core/catalog/credential';
import { PROTOCOL_NAMES, type Protocol } from '../../../core/catalog/protocols';
import type { UpstreamAdapter } from '../../../core/catalog/upstream';
import { fail, type GatewayError } from '../../../core/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { chooseCredential } from '../../../core/health/choose-credential';
import { jsonBody, newRequestId, sendJson } from '../../../core/http/http';
import { object, oneOf, orNull, shape } from '../../../core/http/shape';
import { insertAttempts } from '../../../core/ledger/outbox/rows';
import type { Settings } from '../../../core/settings';
import { ADMIN, writeAudit } from '../../../core/storage/audit';
import { callUpstream } from '../call-upstream';
import { requireUpstream } from './upstream';

const TEST = {
  type: 'object',
  additionalProperties: false,
  properties: { model: TEXT, protocol: { enum: PROTOCOL_NAMES }, credential: TEXT },
  example: { model: 'demo-model', protocol: 'messages' },
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

export function testUpstreamRoute(gateway: PluginGateway): Route {
  const { database } = gateway;
  const readTest = jsonBody<Settings<typeof TEST>>(TEST);
  return {
    listener: 'admin',
    method: 'POST',
    path: '/admin/v1/upstreams/{name}/test',
    summary: 'Make one tiny real call to an upstream and say what came of it.',
    body: TEST,
    answers: { 200: { description: 'What came of it.', schema: TESTED } },
    errors: ['CONFLICT'],
    handle: async ({ params }, request, response) => {
      const upstream = requireUpstream(gateway, params['name']);
      const { model, protocol, credential } = await readTest(request);
      const asked = findAsked(upstream, model, protocol);
      const at = askedWith(upstream, findCredential(gateway, upstream, credential));
      const { result, made } = await callUpstream(gateway.egress, at, asked.model, asked.speaking);
      const { ok, status, problem } = result;
      // It changes nothing here, and costs money there.
      const after = { model: result.model, ok, status, problem };
      const subject = `upstream:${upstream.name}`;
      await database.transaction((transaction) =>
        writeAudit(transaction, { actor: ADMIN, action: 'upstream.test', subject, after }),
      );
      const row = { requestId: newRequestId(), accountId: null, made: [recordedAttempt(made, 0)] };
      await insertAttempts(database, [row]);
      sendJson(response, 200, result);
    },
  };
}

interface Asked {
  readonly model: ModelEntry;
  readonly speaking: { readonly adapter: UpstreamAdapter; readonly protocol: Protocol };
}

/** The model and the protocol that are named, or else the upstream's cheapest model in the first of its protocols. */
function findAsked(upstream: Upstream, named: string | undefined, wanted: Protocol | undefined): Asked {
  const { name, adapters, disabled, models } = upstream;
  if (disabled !== undefined) throw fail('CONFLICT', { message: `"${name}" is disabled: ${disabled}.` });
  const meant = models.filter((each) => named === undefined || each.name === named);
  if (meant.length === 0) throw invalid('model', `"${name}" has ${models.map((each) => each.name).join(', ')}`);
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
  throw invalid('protocol', `"${named ?? name}" does not speak it`);
}

/** The credential that is named, or else one that calls would be asked with. */
function findCredential({ health }: PluginGateway, upstream: Upstream, named: string | undefined): Credential {
  if (named === undefined) return chooseCredential(upstream, health, { session: undefined });
  const { name, credentials } = upstream;
  const meant = credentials.find((each) => each.name === named);
  if (meant !== undefined) return meant;
  throw invalid('credential', `"${name}" has ${credentials.map((each) => each.name).join(', ')}`);
}

function cheapestOf(models: readonly ModelEntry[]): ModelEntry | undefined {
  const [cheapest] = [...models].sort((one, two) => Number(one.price.rates.output - two.price.rates.output));
  return cheapest;
}

function invalid(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}` });
}
