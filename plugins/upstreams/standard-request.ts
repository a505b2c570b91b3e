import type { BodyEdit, ModelCall } from '../../core/catalog/upstream';

/**
 * The edits every upstream needs: its own name of the model, and no `priority`, which is ours. `stream` goes on as it
 * came; only a `null`, which here means absent, would be refused by some.
 */
export function standardEdits(call: ModelCall): BodyEdit[] {
  const edits: BodyEdit[] = [{ member: 'priority', drop: true }];
  const model = JSON.stringify(call.model);
  if (call.members.get('model') !== model) edits.push({ member: 'model', set: model });
  if (call.members.get('stream') === 'null') edits.push({ member: 'stream', drop: true });
  return edits;
}

/** What the client sent and may be forwarded, but for the content type, which the gateway sets. */
export function forwardedHeaders(call: ModelCall): Record<string, string> {
  const { 'content-type': _setByGateway, ...headers } = call.headers;
  return headers;
}
