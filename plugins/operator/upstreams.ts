import { writeAudit } from '../../core/audit';
import type { ModelEntry, Upstream } from '../../core/catalog';
import { fail, type GatewayError } from '../../core/errors';
import { TEXT } from '../../core/fields';
import type { Gateway } from '../../core/gateway';
import { jsonBody, sendJson } from '../../core/http';
import type { Route, Visit } from '../../core/plugin';
import type { Settings } from '../../core/settings';
import { object, oneOf, orNull, pageOf as pageShape, shape } from '../../core/shape';
import { bringBackUpstream, listTakenOut, takeOutUpstream } from '../../core/taken-out-upstreams';
import type { Protocol, UpstreamAdapter } from '../../core/upstream';
import { ADMIN, NOTHING } from './fields';
import { showUpstream, UPSTREAM } from './show-upstream';
import { callUpstream } from './test-upstream';

const EJECT = {
  type: 'object',
  additionalProperties: false,
  properties: { reason: TEXT },
  example: { reason: 'maintenance until noon' },
} as const;
const TEST = {
  type: 'object',
  additionalProperties: false,
  properties: { model: TEXT, protocol: { enum: ['messages', 'chat'] } },
  example: { model: 'demo-model', protocol: 'messages' },
} as const;

/** Where calls may go, and an operator's word about it. Health is what this node knows; nodes tell each other. */
export function upstreamRoutes(gateway: Gateway): Route[] {
  const { database, health } = gateway;
  const readNothing = jsonBody<Settings<typeof NOTHING>>(NOTHING);
  const readEject = jsonBody<Settings<typeof EJECT>>(EJECT);
  const readTest = jsonBody<Settings<typeof TEST>>(TEST);
  const find = ({ params }: Visit) => findUpstream(gateway, params['name'] ?? '');
  const show = async (upstream: Upstream) =>
    showUpstream(upstream, health, (await listTakenOut(database)).get(upstream.name));

  return [
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/upstreams',
      summary: 'Every upstream with its health, prices and whether it is left out.',
      answers: { 200: { description: 'All upstreams.', schema: pageShape(UPSTREAM) } },
      handle: async (_visit, _request, response) => {
        const takenOut = await listTakenOut(database);
        const items = gateway.catalog.upstreams.map((each) => showUpstream(each, health, takenOut.get(each.name)));
        sendJson(response, 200, { items, nextCursor: null });
      },
    },
    {
      listener: 'admin',
      method: 'GET',
      path: '/admin/v1/upstreams/{name}',
      summary: 'One upstream.',
      answers: { 200: { description: 'The upstream.', schema: UPSTREAM } },
      handle: async (visit, _request, response) => sendJson(response, 200, await show(find(visit))),
    },
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/upstreams/{name}/eject',
      summary: 'Ask an upstream no more, on no node, until it is restored.',
      body: EJECT,
      answers: { 200: { description: 'The upstream.', schema: UPSTREAM } },
      handle: async (visit, request, response) => {
        const upstream = find(visit);
        const { reason } = await readEject(request);
        await takeOutUpstream(gateway, upstream.name, { actor: ADMIN, reason });
        sendJson(response, 200, await show(upstream));
      },
    },
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/upstreams/{name}/restore',
      summary: 'Ask an upstream again, whoever or whatever had left it out.',
      body: NOTHING,
      answers: { 200: { description: 'The upstream.', schema: UPSTREAM } },
      handle: async (visit, request, response) => {
        const upstream = find(visit);
        await readNothing(request);
        await bringBackUpstream(gateway, upstream.name, ADMIN);
        sendJson(response, 200, await show(upstream));
      },
    },
    {
      listener: 'admin',
      method: 'POST',
      path: '/admin/v1/upstreams/{name}/test',
      summary: 'Make one tiny real call to an upstream and say what came of it.',
      body: TEST,
      answers: {
        200: {
          description: 'What came of it.',
          schema: object({
            upstream: shape.text,
            model: shape.text,
            protocol: oneOf('messages', 'chat'),
            ok: shape.yes,
            status: orNull(shape.integer),
            ms: shape.integer,
            problem: orNull(shape.text),
          }),
        },
      },
      errors: ['CONFLICT'],
      handle: async (visit, request, response) => {
        const upstream = find(visit);
        const { model, protocol } = await readTest(request);
        const asked = { model: findModel(upstream, model), speaking: findAdapter(upstream, protocol) };
        const result = await callUpstream(gateway.egress, upstream, asked.model, asked.speaking);
        const { ok, status, problem } = result;
        // It changes nothing here, and costs money there.
        const after = { model: result.model, ok, status, problem };
        await database.transaction((transaction) =>
          writeAudit(transaction, {
            actor: ADMIN,
            action: 'upstream.test',
            subject: `upstream:${upstream.name}`,
            after,
          }),
        );
        sendJson(response, 200, result);
      },
    },
  ];
}

function findUpstream({ catalog }: Gateway, name: string): Upstream {
  const upstream = catalog.upstreams.find((each) => each.name === name);
  if (upstream === undefined) throw fail('NOT_FOUND', { message: 'There is no such upstream.' });
  return upstream;
}

/** Its cheapest, when none is named. */
function findModel({ name, models }: Upstream, wanted: string | undefined): ModelEntry {
  const [cheapest] = [...models].sort((one, two) => Number(one.price.outputE8 - two.price.outputE8));
  const model = wanted === undefined ? cheapest : models.find((each) => each.name === wanted);
  if (model === undefined) throw invalid('model', `"${name}" has ${models.map((each) => each.name).join(', ')}`);
  return model;
}

function findAdapter(
  { name, adapters, disabled }: Upstream,
  wanted: Protocol | undefined,
): { readonly adapter: UpstreamAdapter; readonly protocol: Protocol } {
  if (disabled !== undefined) throw fail('CONFLICT', { message: `"${name}" is disabled: ${disabled}.` });
  for (const adapter of adapters) {
    const protocol = wanted ?? adapter.protocols[0];
    if (protocol !== undefined && adapter.protocols.includes(protocol)) return { adapter, protocol };
  }
  throw invalid('protocol', `"${name}" does not speak it`);
}

function invalid(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}` });
}
