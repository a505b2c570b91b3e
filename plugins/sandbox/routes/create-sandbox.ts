import type { Route } from '../../../core/api/route';
import type { ErrorCode } from '../../../core/errors';
import { versionTag } from '../../../core/http/etag';
import { jsonBody, sendJson } from '../../../core/http/http';
import type { Settings } from '../../../core/settings';
import { admit } from '../asking/admission';
import { CREATION, CREATION_BODY, readCreation } from '../asking/creation';
import { readRecord } from '../books/record';
import { RECORD, RECORD_HEADERS } from '../books/shapes';
import type { SandboxService } from '../service';

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

export function createSandboxRoute(service: SandboxService): Route {
  const readBody = jsonBody<Settings<typeof CREATION>>(CREATION);
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: '/v1/sandboxes',
    summary: 'Create a sandbox, once per idempotency key.',
    body: CREATION_BODY,
    answers: {
      202: {
        description: 'The record of the sandbox, which is being created.',
        schema: RECORD,
        headers: { Location: 'The address of the sandbox.', ...RECORD_HEADERS },
      },
    },
    errors: CREATION_ERRORS,
    // Billed per second at the hourly prices of the offering (`GET /v1/offerings`).
    billing: { type: 'PER_SECOND', currency: 'USD', prices: '/v1/offerings' },
    handle: async ({ key }, request, response) => {
      const creation = readCreation(await readBody(request));
      const id = await admit(service, key, creation);
      const record = await readRecord(service.database, key.accountId, id);
      sendJson(response, 202, record, { location: `/v1/sandboxes/${id}`, etag: versionTag(record.stateVersion) });
    },
  };
}
