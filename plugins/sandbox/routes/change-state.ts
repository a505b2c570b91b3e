import type { ErrorCode } from '../../../core/errors';
import { jsonBody, sendJson } from '../../../core/http';
import type { AccountHandler, AccountRoute } from '../../../core/plugin';
import type { Settings } from '../../../core/settings';
import { IDEMPOTENCY_KEY, readIdempotencyKey } from '../creation';
import { showOperation } from '../record';
import { ask, type Verb } from '../requests';
import type { SandboxService } from '../service';
import { OPERATION } from '../shapes';
import { findSandbox } from '../store';
import { readIfMatch } from './etag';

const BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { idempotencyKey: {} },
} as const;

const TERMINATE_ERRORS: readonly ErrorCode[] = [
  'IDEMPOTENCY_KEY_INVALID',
  'SANDBOX_NOT_FOUND',
  'STATE_CHANGE_IN_PROGRESS',
  'PRECONDITION_FAILED',
];
const SUSPEND_ERRORS: readonly ErrorCode[] = [
  ...TERMINATE_ERRORS,
  'SANDBOX_NOT_RUNNING',
  'SANDBOX_FINAL',
  'NOT_SUPPORTED',
];
const RESUME_ERRORS: readonly ErrorCode[] = [
  ...SUSPEND_ERRORS,
  'INSUFFICIENT_BALANCE',
  'KEY_LIMIT_EXCEEDED',
  'FORBIDDEN',
];

/** What all of them say of themselves. */
const SAID = {
  headers: { 'If-Match': 'Only if the sandbox is as the answer with this `ETag` said.' },
  answers: {
    200: { description: 'It was so already.', schema: OPERATION },
    202: { description: 'The operation; it is done from now on.', schema: OPERATION },
  },
} as const;

/** POST …/suspend, …/resume, …/terminate, and DELETE, which is terminate. */
export function changeState(service: SandboxService): readonly AccountRoute[] {
  const readBody = jsonBody<Settings<typeof BODY>>(BODY);
  const handle =
    (verb: Verb): AccountHandler =>
    async ({ accountId, params }, request, response) => {
      await findSandbox(service.database, accountId, params['id'] ?? '');
      const body = await readBody(request);
      const idempotencyKey = body.idempotencyKey === undefined ? undefined : readIdempotencyKey(body.idempotencyKey);
      const ifMatch = readIfMatch(request);
      const operation = await ask(service, { accountId }, params['id'] ?? '', { verb, idempotencyKey, ifMatch });
      sendJson(response, operation.noop ? 200 : 202, showOperation(operation));
    };
  const post = (verb: Verb, word: string, summary: string, errors: readonly ErrorCode[]): AccountRoute => ({
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: `/v1/sandboxes/{id}/${word}`,
    summary,
    ...SAID,
    body: { ...BODY, properties: { idempotencyKey: IDEMPOTENCY_KEY }, example: { idempotencyKey: 'evening-7' } },
    errors,
    handle: handle(verb),
  });
  const remove: AccountRoute = {
    listener: 'public',
    auth: 'key',
    method: 'DELETE',
    path: '/v1/sandboxes/{id}',
    summary: 'End a sandbox; the same as terminate.',
    ...SAID,
    errors: TERMINATE_ERRORS,
    handle: handle('TERMINATE'),
  };
  return [
    post('SUSPEND', 'suspend', 'Suspend a running sandbox.', SUSPEND_ERRORS),
    post('RESUME', 'resume', 'Resume a suspended sandbox.', RESUME_ERRORS),
    post('TERMINATE', 'terminate', 'End a sandbox; always accepted.', TERMINATE_ERRORS),
    remove,
  ];
}
