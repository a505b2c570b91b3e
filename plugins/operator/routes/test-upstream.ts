import type { Route } from '../../../core/api/route';
import { recordedAttempt } from '../../../core/calls/made-attempt';
import { askedWith } from '../../../core/catalog/credential';
import { PROTOCOL_NAMES } from '../../../core/catalog/protocols';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, newRequestId, sendJson } from '../../../core/http/http';
import { object, oneOf, orNull, shape } from '../../../core/http/shape';
import { insertAttempts } from '../../../core/ledger/outbox/rows';
import type { Settings } from '../../../core/settings';
import { writeAudit } from '../../../core/storage/audit';
import { callUpstream } from '../call-upstream';
import { ASKED, findAsked, findCredential } from './asked-upstream';
import { requireUpstream } from './upstream';

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
  const readTest = jsonBody<Settings<typeof ASKED>>(ASKED);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/upstreams/{name}/test',
    summary: 'Make one small real call to an upstream and report the result.',
    body: ASKED,
    answers: { 200: { description: 'The result.', schema: TESTED } },
    errors: ['CONFLICT'],
    handle: async ({ params, operator }, request, response) => {
      const upstream = requireUpstream(gateway, params['name']);
      const { model, protocol, credential } = await readTest(request);
      const asked = findAsked(upstream, model, protocol);
      const at = askedWith(upstream, findCredential(gateway, upstream, credential));
      const { result, made } = await callUpstream(gateway.egress, at, asked.model, asked.speaking);
      const { ok, status, problem } = result;
      // A test changes nothing in the gateway, but the vendor charges for it.
      const after = { model: result.model, ok, status, problem };
      const subject = `upstream:${upstream.name}`;
      await database.transaction((transaction) =>
        writeAudit(transaction, { actor: operator.actor, action: 'upstream.test', subject, after }),
      );
      const row = { requestId: newRequestId(), accountId: null, made: [recordedAttempt(made, 0)] };
      await insertAttempts(database, [row]);
      sendJson(response, 200, result);
    },
  };
}
