import { createHash, hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Call, ModelRequest } from '../../core/calls/call';
import { fail, type GatewayError } from '../../core/errors';
import { hostOf, isDirectHost } from '../../core/http/request-target';
import type { Intent } from '../../core/ledger/ledger';

export const IDEMPOTENCY_HEADER = 'idempotency-key';

const MOST_CHARACTERS = 160;

/**
 * Returns the client's intent to make this call only once; undefined without an Idempotency-Key.
 * @throws IDEMPOTENCY_KEY_INVALID
 */
export function intentOf(
  call: Pick<Call, 'protocol' | 'path'> & { readonly request: ModelRequest },
  message: IncomingMessage,
): Intent | undefined {
  const value = message.headers[IDEMPOTENCY_HEADER];
  if (value === undefined) return undefined;
  const isOnce = message.headersDistinct[IDEMPOTENCY_HEADER]?.length === 1;
  if (typeof value !== 'string' || !isOnce || value === '' || value.length > MOST_CHARACTERS) throw invalid();
  return { key: hash('sha256', value, 'base64url'), body: hashOfCall(call, message) };
}

function invalid(): GatewayError {
  const message = `Idempotency-Key: expected one header of 1 to ${MOST_CHARACTERS} characters`;
  return fail('IDEMPOTENCY_KEY_INVALID', { param: IDEMPOTENCY_HEADER, message });
}

/** Returns the hash of the body's bytes and the address. The host counts only if it is a direct address, because a gateway may have several hosts. */
function hashOfCall({ protocol, path, request }: Parameters<typeof intentOf>[0], message: IncomingMessage): string {
  const host = hostOf(message);
  const digest = createHash('sha256');
  digest.update(`${protocol} ${isDirectHost(host) ? host : ''} ${path} ${request.query}\n`);
  for (const chunk of request.body.chunks) digest.update(chunk);
  return digest.digest('base64url');
}
