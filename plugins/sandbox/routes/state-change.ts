import type { AccountHandler } from '../../../core/api/route';
import type { ErrorCode } from '../../../core/errors';
import { readIfMatch } from '../../../core/http/etag';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { readIdempotencyKey } from '../asking/creation';
import { ask, type Verb } from '../asking/requests';
import { showOperation } from '../books/record';
import { OPERATION } from '../books/shapes';
import { findSandbox } from '../books/store';
import type { SandboxService } from '../service';

/** The parts that all endpoints that request another state share. */

export const STATE_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { idempotencyKey: {} },
} as const;

export const STATE_HEADERS = { 'If-Match': 'Only if the sandbox is as the answer with this `ETag` said.' };

export const STATE_ANSWERS = {
  200: { description: 'Nothing had to be changed.', schema: OPERATION },
  202: { description: 'The operation, which is now in progress.', schema: OPERATION },
};

/** The errors of a termination. Other changes have more, because a sandbox can be terminated in every state. */
export const TERMINATE_ERRORS: readonly ErrorCode[] = [
  'IDEMPOTENCY_KEY_INVALID',
  'SANDBOX_NOT_FOUND',
  'STATE_CHANGE_IN_PROGRESS',
  'PRECONDITION_FAILED',
];

/** Returns the handler that requests the state change `verb`. Requests with the same idempotency key start one operation. */
export function stateHandler(service: SandboxService, verb: Verb): AccountHandler {
  const readBody = jsonBody<Settings<typeof STATE_BODY>>(STATE_BODY);
  return async ({ accountId, params }, request, response) => {
    await findSandbox(service.database, accountId, params['id'] ?? '');
    const body = await readBody(request);
    const idempotencyKey = body.idempotencyKey === undefined ? undefined : readIdempotencyKey(body.idempotencyKey);
    const ifMatch = readIfMatch(request);
    const operation = await ask(service, { accountId }, params['id'] ?? '', { verb, idempotencyKey, ifMatch });
    sendJson(response, operation.noop ? 200 : 202, showOperation(operation));
  };
}
