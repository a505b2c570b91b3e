import { jsonBody, sendJson } from '../../../core/http';
import type { KeyHandler, Route } from '../../../core/plugin';
import type { Settings } from '../../../core/settings';
import { readIdempotencyKey } from '../creation';
import { showOperation } from '../record';
import { ask, type Verb } from '../requests';
import type { SandboxService } from '../service';
import { readIfMatch } from './etag';

const BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { idempotencyKey: {} },
} as const;

/** POST …/suspend, …/resume, …/terminate, and DELETE, which is terminate. */
export function changeState(service: SandboxService): readonly Route[] {
  const readBody = jsonBody<Settings<typeof BODY>>(BODY);
  const handle =
    (verb: Verb): KeyHandler =>
    async ({ key, params }, request, response) => {
      const body = await readBody(request);
      const idempotencyKey = body.idempotencyKey === undefined ? undefined : readIdempotencyKey(body.idempotencyKey);
      const ifMatch = readIfMatch(request);
      const operation = await ask(service, key, params['id'] ?? '', { verb, idempotencyKey, ifMatch });
      sendJson(response, operation.noop ? 200 : 202, showOperation(operation));
    };
  const post = (verb: Verb, word: string, summary: string): Route => ({
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: `/v1/sandboxes/{id}/${word}`,
    summary,
    handle: handle(verb),
  });
  return [
    post('SUSPEND', 'suspend', 'Suspend a running sandbox.'),
    post('RESUME', 'resume', 'Resume a suspended sandbox.'),
    post('TERMINATE', 'terminate', 'End a sandbox; always accepted.'),
    {
      listener: 'public',
      auth: 'key',
      method: 'DELETE',
      path: '/v1/sandboxes/{id}',
      summary: 'End a sandbox; the same as terminate.',
      handle: handle('TERMINATE'),
    },
  ];
}
