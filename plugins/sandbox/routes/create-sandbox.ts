import { jsonBody, sendJson } from '../../../core/http';
import type { Route } from '../../../core/plugin';
import type { Settings } from '../../../core/settings';
import { admit } from '../admission';
import { CREATION, readCreation } from '../creation';
import { readRecord } from '../record';
import type { SandboxService } from '../service';
import { etagOf } from './etag';

export function createSandbox(service: SandboxService): Route {
  const readBody = jsonBody<Settings<typeof CREATION>>(CREATION);
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: '/v1/sandboxes',
    summary: 'Create a sandbox, once per idempotency key.',
    handle: async ({ key }, request, response) => {
      const creation = readCreation(await readBody(request));
      const id = await admit(service, key, creation);
      const record = await readRecord(service.database, key.accountId, id);
      sendJson(response, 202, record, { location: `/v1/sandboxes/${id}`, etag: etagOf(record.stateVersion) });
    },
  };
}
