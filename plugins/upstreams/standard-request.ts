import type { BodyEdit, ModelCall } from '../../core/catalog/upstream';

/**
 * Returns the changes to the body that every upstream needs. They write the upstream's own model name and remove `priority`, which only the
 * gateway reads. `stream` stays as the client sent it, unless it is `null`. `null` means absent and is removed, because some upstreams
 * reject it.
 */
export function standardEdits(call: ModelCall): BodyEdit[] {
  const edits: BodyEdit[] = [{ member: 'priority', drop: true }];
  const model = JSON.stringify(call.model);
  if (call.members.get('model') !== model) edits.push({ member: 'model', set: model });
  if (call.members.get('stream') === 'null') edits.push({ member: 'stream', drop: true });
  return edits;
}

/** Returns the client's headers that may be forwarded, except the content type, which the gateway sets. */
export function forwardedHeaders(call: ModelCall): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name in call.headers) if (name !== 'content-type') headers[name] = call.headers[name] as string;
  return headers;
}
