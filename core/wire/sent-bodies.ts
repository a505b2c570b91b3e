import { subscribe } from 'node:diagnostics_channel';

/** undici tells its handlers nothing of the request's way; its diagnostics channels do. */
const sentBodies = new WeakSet<object>();

subscribe('undici:request:bodySent', (message) => {
  const { body } = (message as { readonly request: { readonly body: object | null } }).request;
  if (body !== null) sentBodies.add(body);
});

/** True once the last byte of a request's body was handed to the socket: from then on the upstream has taken the request. */
export function isBodySent(body: object): boolean {
  return sentBodies.has(body);
}
