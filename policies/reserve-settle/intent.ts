import { createHash, hash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Call, ModelRequest } from '../../core/calls/call';
import { fail, type GatewayError } from '../../core/errors';
import { hostOf, isDirectHost } from '../../core/http/request-target';
import type { Intent } from '../../core/ledger/ledger';

export const IDEMPOTENCY_HEADER = 'idempotency-key';

const MOST_CHARACTERS = 160;

/** Returns what the client means to have done once; undefined where it sends no Idempotency-Key. @throws IDEMPOTENCY_KEY_INVALID */
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

/** The bytes as they came, with the address they came to. Of the host only a direct address counts: a gateway may have several. */
function hashOfCall({ protocol, path, request }: Parameters<typeof intentOf>[0], message: IncomingMessage): string {
  const host = hostOf(message);
  const digest = createHash('sha256');
  digest.update(`${protocol} ${isDirectHost(host) ? host : ''} ${path} ${request.query}\n`);
  for (const chunk of request.body.chunks) digest.update(chunk);
  return digest.digest('base64url');
}
