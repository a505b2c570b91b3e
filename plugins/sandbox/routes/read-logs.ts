import type { IncomingMessage } from 'node:http';
import type { Route } from '../../../core/api/route';
import { sendJson } from '../../../core/http/http';
import { flagReader, integerReader, readQuery } from '../../../core/http/query';
import { listOf, object, oneOf, shape } from '../../../core/http/shape';
import { findSandbox } from '../books/store';
import { COMMAND_EVENTS, followCommand, sendEvents } from '../commands/events';
import { findCommand, readOutput } from '../commands/store';
import { COMMAND_STATUS, TRUNCATED } from '../commands/view';
import type { InsideService } from '../inside';

const FILTERS = {
  after: integerReader(0, 2_147_483_647, { default: 0 }),
  follow: flagReader(false),
};

const LOGS = object({
  items: listOf(object({ sequence: shape.integer, stream: oneOf('stdout', 'stderr'), data: shape.text })),
  nextAfter: shape.integer,
  status: COMMAND_STATUS,
  truncated: TRUNCATED,
});

export function readLogsRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/commands/{commandId}/logs',
    summary: "A command's output after a sequence number; with follow=true as events until it ends.",
    query: FILTERS,
    headers: { 'Last-Event-ID': 'The same as `after`, as browsers say it.' },
    answers: { 200: { description: 'The output.', schema: LOGS, orAs: COMMAND_EVENTS } },
    errors: ['SANDBOX_NOT_FOUND', 'COMMAND_LIMIT'],
    handle: async ({ key, params, query }, request, response) => {
      const { follow = false, after = lastEventOf(request) } = readQuery(query, FILTERS);
      const sandbox = await findSandbox(service.database, key.accountId, params['id'] ?? '');
      const command = await findCommand(service.database, sandbox.id, params['commandId'] ?? '');
      const place = { sandboxId: sandbox.id, commandId: command.id };
      if (follow) {
        const endFollowing = service.commands.followers.add(sandbox.id);
        return sendEvents(response, 200, (left) => followCommand(service, place, after, left), endFollowing);
      }
      const pieces = await readOutput(service.database, command.id, after);
      sendJson(response, 200, {
        items: pieces.map(({ sequence, stream, bytes }) => ({ sequence, stream, data: bytes.toString() })),
        nextAfter: pieces.at(-1)?.sequence ?? after,
        status: command.status,
        truncated: { stdout: command.stdoutTruncated, stderr: command.stderrTruncated },
      });
    },
  };
}

/** Returns the `Last-Event-ID` that a browser's EventSource sends when it reconnects. */
function lastEventOf({ headers }: IncomingMessage): number {
  const text = String(headers['last-event-id'] ?? '');
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}
