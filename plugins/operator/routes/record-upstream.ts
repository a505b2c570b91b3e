import type { Route } from '../../../core/api/route';
import { recordedAttempt } from '../../../core/calls/made-attempt';
import { askedWith } from '../../../core/catalog/credential';
import { PROTOCOL_NAMES } from '../../../core/catalog/protocols';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { jsonBody, newRequestId, sendJson } from '../../../core/http/http';
import { listOf, object, oneOf, orNull, shape } from '../../../core/http/shape';
import { insertAttempts } from '../../../core/ledger/outbox/rows';
import type { Settings } from '../../../core/settings';
import { writeAudit } from '../../../core/storage/audit';
import { recordUpstream } from '../record-upstream';
import { ASKED, findAsked, findCredential, invalid } from './asked-upstream';
import { requireUpstream } from './upstream';

const RECORDED = object({
  upstream: shape.text,
  model: shape.text,
  protocol: oneOf(...PROTOCOL_NAMES),
  files: listOf(object({ name: shape.text, content: shape.text })),
  problem: orNull(shape.text),
});

export function recordUpstreamRoute(gateway: PluginGateway): Route {
  const { database, egress } = gateway;
  const readAsked = jsonBody<Settings<typeof ASKED>>(ASKED);
  return {
    listener: 'admin',
    role: 'write',
    method: 'POST',
    path: '/admin/v1/upstreams/{name}/record',
    summary:
      'Make three small real calls to an upstream and return its answers, without secrets and ids of the account.',
    body: ASKED,
    answers: { 200: { description: 'The files of a folder of recordings.', schema: RECORDED } },
    errors: ['CONFLICT'],
    handle: async ({ params, operator }, request, response) => {
      const upstream = requireUpstream(gateway, params['name']);
      const { model: named, protocol: wanted, credential } = await readAsked(request);
      const { model, speaking } = findAsked(upstream, named, wanted);
      if (speaking.adapter.own !== undefined)
        throw invalid('protocol', `"${upstream.name}" has its own dialect, whose answers must be recorded by hand`);
      const at = askedWith(upstream, findCredential(gateway, upstream, credential));
      const { made, files, problem } = await recordUpstream(egress, at, model, speaking);
      const after = { model: model.name, ok: problem === null, problem };
      const subject = `upstream:${upstream.name}`;
      await database.transaction((transaction) =>
        writeAudit(transaction, { actor: operator.actor, action: 'upstream.record', subject, after }),
      );
      const attempts = made.map((each, index) => recordedAttempt(each, index));
      await insertAttempts(database, [{ requestId: newRequestId(), accountId: null, made: attempts }]);
      const { protocol } = speaking;
      sendJson(response, 200, { upstream: upstream.name, model: model.name, protocol, files, problem });
    },
  };
}
