import { subscribe } from 'node:diagnostics_channel';

/** undici does not report to its handlers how much of a request was sent, but its diagnostics channels do. */
const sentBodies = new WeakSet<object>();

subscribe('undici:request:bodySent', (message) => {
  const { body } = (message as { readonly request: { readonly body: object | null } }).request;
  if (body !== null) sentBodies.add(body);
});

/**
 * Returns true after the last byte of a request's body was written to the socket. From then on the request counts as received by
 * the upstream.
 */
export function isBodySent(body: object): boolean {
  return sentBodies.has(body);
}
