import type { IncomingMessage } from 'node:http';
import { type AccountHandler, type AccountRoute, asSessionRoute, type Route } from '../../../core/api/route';
import { type ErrorCode, fail } from '../../../core/base/errors';
import type { Settings } from '../../../core/base/settings';
import { TAGS_DESCRIPTION, tagsInHead } from '../../../core/calls/tags';
import { readIfMatch, versionTag } from '../../../core/http/etag';
import { jsonBody, sendJson } from '../../../core/http/http';
import { integerReader, readQuery, wordsReader } from '../../../core/http/query';
import { EVERYONE, KEY_HOLDERS } from '../../../core/sign-in/member-roles';
import { admit } from '../admission/admission';
import { CREATION, CREATION_BODY, IDEMPOTENCY_KEY, readCreation, readIdempotencyKey } from '../admission/creation';
import { ask, type Verb } from '../admission/requests';
import { isFinal, OBSERVED_STATES, type ObservedState } from '../lifecycle/states';
import type { SandboxService } from '../service';
import { findSandbox, readOperation } from '../store/queries';
import { readRecord, showOperation } from '../store/record';
import { OPERATION, RECORD_HEADERS, SANDBOX_RECORD } from '../store/shapes';
import { byAccount, byKey } from './parts';

/** The parts of the OpenAPI document that are common to all endpoints that request another state of a sandbox. */

const STATE_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { idempotencyKey: {} },
} as const;

const STATE_HEADERS = { 'If-Match': 'Only if the sandbox is as the answer with this `ETag` said.' };

const STATE_ANSWERS = {
  200: { description: 'Nothing had to be changed.', schema: OPERATION },
  202: { description: 'The operation, which is now in progress.', schema: OPERATION },
};

/** The errors of a termination. Other changes have more errors, because only a termination is possible in every state. */
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
  'BUDGET_EXCEEDED',
  'FORBIDDEN',
];

/** The endpoints that change a state. They differ only in the state that they request. */
const CHANGES = [
  { verb: 'SUSPEND', summary: 'Suspend a running sandbox.', errors: SUSPEND_ERRORS },
  { verb: 'RESUME', summary: 'Resume a suspended sandbox.', errors: RESUME_ERRORS },
  { verb: 'TERMINATE', summary: 'End a sandbox; always accepted.', errors: TERMINATE_ERRORS },
] as const;

const CREATION_ERRORS: readonly ErrorCode[] = [
  'SELECTION_INVALID',
  'REQUIREMENTS_INVALID',
  'QUOTE_INVALID',
  'QUOTE_EXPIRED',
  'POLICY_UNSUPPORTED',
  'IDEMPOTENCY_KEY_INVALID',
  'METADATA_INVALID',
  'INSUFFICIENT_BALANCE',
  'KEY_LIMIT_EXCEEDED',
  'BUDGET_EXCEEDED',
  'TOO_MANY_LIMITED_TAGS',
  'TOO_MANY_TAGS',
  'FORBIDDEN',
  'OFFERING_NOT_FOUND',
  'NO_MATCHING_OFFERING',
  'OFFERING_CHANGED',
  'QUOTE_USED',
  'ACTIVE_INSTANCE_LIMIT',
  'IDEMPOTENCY_CONFLICT',
  'SUPPLIER_UNAVAILABLE',
  'RATE_LIMITED',
];

const DEFAULT_WAIT_SECONDS = 30;

const WAIT_READERS = {
  waitFor: wordsReader(OBSERVED_STATES),
  waitSeconds: integerReader(0, 60, { default: DEFAULT_WAIT_SECONDS }),
};

/** How often a waiting request reads the sandbox again, because a change event may be lost. */
const LOOK_EVERY_MS = 2_000;

/** The routes that make, show and change a sandbox. */
export function oneSandboxRoutes(service: SandboxService): readonly Route[] {
  const { database } = service;
  const readCreationBody = jsonBody<Settings<typeof CREATION>>(CREATION);
  const show = showRoute(service);
  const end = byAccount('DELETE', '/v1/sandboxes/{id}', 'End a sandbox; the same as terminate.', {
    headers: STATE_HEADERS,
    answers: STATE_ANSWERS,
    errors: TERMINATE_ERRORS,
    handle: stateHandler(service, 'TERMINATE'),
  });
  return [
    byKey('POST', '/v1/sandboxes', 'Create a sandbox, once per idempotency key.', {
      headers: { 'X-SVC-Tags': TAGS_DESCRIPTION },
      body: CREATION_BODY,
      answers: {
        202: {
          description: 'The record of the sandbox, which is being created.',
          schema: SANDBOX_RECORD,
          headers: { Location: 'The address of the sandbox.', ...RECORD_HEADERS },
        },
      },
      errors: CREATION_ERRORS,
      // A sandbox is billed per second at the hourly prices of its offering (`GET /v1/offerings`).
      billing: { type: 'PER_SECOND', currency: 'USD', prices: '/v1/offerings' },
      handle: async ({ key }, request, response) => {
        const tags = tagsInHead(request.headers);
        const id = await admit(service, key, readCreation(await readCreationBody(request), tags));
        const record = await readRecord(database, key.accountId, id);
        sendJson(response, 202, record, { location: `/v1/sandboxes/${id}`, etag: versionTag(record.stateVersion) });
      },
    }),
    show,
    asSessionRoute(show, '/console/api/sandboxes/{id}', EVERYONE),
    ...CHANGES.map(({ verb, summary, errors }) =>
      byAccount('POST', `/v1/sandboxes/{id}/${verb.toLowerCase()}`, summary, {
        headers: STATE_HEADERS,
        body: {
          ...STATE_BODY,
          properties: { idempotencyKey: IDEMPOTENCY_KEY },
          example: { idempotencyKey: 'evening-7' },
        },
        answers: STATE_ANSWERS,
        errors,
        handle: stateHandler(service, verb),
      }),
    ),
    end,
    asSessionRoute(end, '/console/api/sandboxes/{id}', KEY_HOLDERS),
    byKey('GET', '/v1/sandboxes/{id}/operations/{operationId}', 'One operation of a sandbox.', {
      answers: { 200: { description: 'The operation.', schema: OPERATION } },
      errors: ['SANDBOX_NOT_FOUND'],
      handle: async ({ key, params }, _request, response) => {
        const sandbox = await findSandbox(database, key.accountId, params['id'] ?? '');
        const operation = await readOperation(database, sandbox.id, params['operationId'] ?? '');
        if (operation === undefined) throw fail('NOT_FOUND', { message: 'The sandbox has no operation with this id.' });
        sendJson(response, 200, showOperation(operation));
      },
    }),
  ];
}

function showRoute(service: SandboxService): AccountRoute {
  return byAccount(
    'GET',
    '/v1/sandboxes/{id}',
    'A sandbox; with waitFor once it is in one of these states, or after waitSeconds as it is.',
    {
      query: WAIT_READERS,
      answers: { 200: { description: 'Its record.', schema: SANDBOX_RECORD, headers: RECORD_HEADERS } },
      errors: ['SANDBOX_NOT_FOUND'],
      handle: async ({ accountId, memberId, params, query }, request, response) => {
        const { waitFor, waitSeconds = DEFAULT_WAIT_SECONDS } = readQuery(query, WAIT_READERS);
        const id = params['id'] ?? '';
        if (memberId !== undefined) await findSandbox(service.database, accountId, id, memberId);
        if (waitFor !== undefined) await waitUntil(service, request, accountId, id, waitFor, waitSeconds);
        const record = await readRecord(service.database, accountId, id);
        sendJson(response, 200, record, { etag: versionTag(record.stateVersion) });
      },
    },
  );
}

/** Waits until the sandbox has one of these states or a final one, the wait times out, the client disconnects or the process is stopping. */
async function waitUntil(
  { changes, database, gateway }: SandboxService,
  request: IncomingMessage,
  accountId: string,
  id: string,
  states: readonly ObservedState[],
  waitSeconds: number,
): Promise<void> {
  const deadlineMs = performance.now() + waitSeconds * 1_000;
  for (;;) {
    const leftMs = Math.max(0, deadlineMs - performance.now());
    // Subscribe to changes before reading the sandbox, so that a change after the read is not missed.
    const change = changes.next(id, Math.min(LOOK_EVERY_MS, leftMs));
    const { observedState } = await findSandbox(database, accountId, id);
    const isThere = states.includes(observedState) || isFinal(observedState);
    if (isThere || leftMs === 0 || request.destroyed || gateway.isStopping()) return;
    await change;
  }
}

/** Returns the handler that requests the state change `verb`. Requests with the same idempotency key start one operation. */
function stateHandler(service: SandboxService, verb: Verb): AccountHandler {
  const readBody = jsonBody<Settings<typeof STATE_BODY>>(STATE_BODY);
  return async ({ accountId, memberId, params, stillAllowed }, request, response) => {
    await findSandbox(service.database, accountId, params['id'] ?? '', memberId);
    const body = await readBody(request);
    await stillAllowed?.();
    const idempotencyKey = body.idempotencyKey === undefined ? undefined : readIdempotencyKey(body.idempotencyKey);
    const ifMatch = readIfMatch(request);
    const operation = await ask(service, { accountId }, params['id'] ?? '', { verb, idempotencyKey, ifMatch });
    sendJson(response, operation.noop ? 200 : 202, showOperation(operation));
  };
}
