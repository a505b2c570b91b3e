import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/errors';
import { sendJson } from '../../../core/http/http';
import { flagReader, integerReader, readQuery } from '../../../core/http/query';
import { listOf, object, oneOf, shape } from '../../../core/http/shape';
import type { Settings } from '../../../core/settings';
import { findUnfinished, openRunning, operate, RUNNING_ERRORS, type RunningSandbox } from '../asking/access';
import { findSandbox } from '../books/store';
import type { CommandRequest } from '../commands/commands';
import {
  COMMAND,
  COMMAND_EVENTS,
  COMMAND_STATUS,
  commandView,
  followCommand,
  outputView,
  sendEvents,
  TRUNCATED,
} from '../commands/events';
import type { LiveCommand } from '../commands/live-command';
import { type Command, findCommand, readOutput } from '../commands/store';
import type { InsideService } from '../service';
import { COMMAND_SIGNALS } from '../suppliers/supplier';
import { readBody } from './read-body';

export function readCommandRoute(service: InsideService): Route {
  return {
    listener: 'public',
    auth: 'key',
    method: 'GET',
    path: '/v1/sandboxes/{id}/commands/{commandId}',
    summary: 'The state of a command, with the last mebibyte of its output.',
    answers: { 200: { description: 'The command.', schema: COMMAND } },
    errors: ['SANDBOX_NOT_FOUND'],
    handle: async ({ key, params }, _request, response) => {
      const sandbox = await findSandbox(service.database, key.accountId, params['id'] ?? '');
      const command = await findCommand(service.database, sandbox.id, params['commandId'] ?? '');
      sendJson(response, 200, commandView(command, outputView(await readOutput(service.database, command.id, 0))));
    },
  };
}

const NEW_COMMAND = {
  type: 'object',
  additionalProperties: false,
  required: ['command'],
  properties: {
    command: { description: 'Run by /bin/sh -c.', type: 'string', minLength: 1, maxLength: 131_072 },
    timeoutSeconds: {
      description:
        'After this time the command and all its processes are killed. Default: 60 s, and never in the background.',
      type: 'integer',
      minimum: 1,
      maximum: 86_400,
    },
    cwd: { type: 'string', minLength: 1, maxLength: 4_095 },
    env: { type: 'object', maxProperties: 1_000, additionalProperties: { type: 'string' } },
    stdin: { type: 'string' },
    background: { type: 'boolean', default: false },
  },
  example: { command: 'make test', cwd: 'job', timeoutSeconds: 600 },
} as const;

const TIMEOUT_SECONDS = 60;
const MOST_BYTES = 4 * 1_048_576;
/** The most bytes that Linux accepts in one argument. The limit of all arguments is higher. */
const MOST_OF_WORD = 131_071;
const MOST_OF_ENV = 1_048_576;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

type Body = Settings<typeof NEW_COMMAND>;

export function runCommandRoute(service: InsideService): Route {
  const read = readBody<Body>(NEW_COMMAND, { maxBytes: MOST_BYTES, invalid: 'COMMAND_INVALID' });
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: '/v1/sandboxes/{id}/commands',
    summary: 'Runs a shell command: waits for its end, streams its output as events, or leaves it running.',
    body: NEW_COMMAND,
    answers: {
      201: {
        description:
          'The command, ended or begun in the background; its events for clients that accept `text/event-stream`.',
        schema: COMMAND,
        orAs: COMMAND_EVENTS,
      },
    },
    errors: [...RUNNING_ERRORS, 'COMMAND_INVALID', 'COMMAND_LIMIT'],
    handle: async (visit, request, response) => {
      const { accountId, params } = visit;
      const { offering } = await findUnfinished(service, accountId, params['id'] ?? '');
      if (!offering.capabilities.exec) throw fail('NOT_SUPPORTED');
      const body = checkText(await read(request, visit));
      const running = await openRunning(service, accountId, params['id'] ?? '');
      if (request.headers.accept?.includes('text/event-stream') === true) {
        return runFollowed(service, running, commandOf(body, request), response);
      }
      const live = await service.commands.start(running, commandOf(body, request));
      if (body.background) return sendJson(response, 201, commandView(live.command, NOTHING_YET));
      const ended = await Promise.race([live.ended, untilStopping(service, live)]);
      const output = { stdout: live.output.text('stdout'), stderr: live.output.text('stderr') };
      sendJson(response, 201, commandView(ended, output));
    },
  };
}

function commandOf(body: Body, { headers }: IncomingMessage): CommandRequest {
  return {
    command: body.command,
    timeoutSeconds: body.timeoutSeconds ?? (body.background ? undefined : TIMEOUT_SECONDS),
    cwd: body.cwd,
    env: body.env ?? {},
    stdin: body.stdin,
    background: body.background,
    headers,
  };
}

/** Runs a command and streams its events to the client. It starts none if the sandbox has too many followers. */
async function runFollowed(
  service: InsideService,
  running: RunningSandbox,
  command: CommandRequest,
  response: ServerResponse,
): Promise<void> {
  const endFollowing = service.commands.followers.add(running.sandbox.id);
  const live = await service.commands.start(running, command).catch((error: unknown) => {
    endFollowing();
    throw error;
  });
  await sendEvents(response, 201, (left) => eventsOf(service, live, left), endFollowing);
}

const LOOK_EVERY_MS = 500;

/** Waits for the command's end, but no longer once the process is stopping. The caller then gets a running command and asks again. */
async function untilStopping({ gateway }: InsideService, { command, ended }: LiveCommand): Promise<Command> {
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  while (!hasEnded && !gateway.isStopping()) await sleep(LOOK_EVERY_MS, undefined, { ref: false });
  return command;
}

const NOTHING_YET = { stdout: '', stderr: '' };

async function* eventsOf(service: InsideService, { command }: LiveCommand, left: AbortSignal) {
  const { stdout: _, stderr: __, ...started } = commandView(command, NOTHING_YET);
  yield { event: 'start', sequence: 0, data: started } as const;
  yield* followCommand(service, { sandboxId: command.sandboxId, commandId: command.id }, 0, left);
}

/** Rejects text that no process can receive as an argument or variable. @throws COMMAND_INVALID */
function checkText(body: Body): Body {
  const { command, cwd, env = {} } = body;
  let total = 0;
  if (command.includes('\0')) throw invalid('command', 'contains a NUL character');
  if (Buffer.byteLength(command) > MOST_OF_WORD) throw invalid('command', `has more than ${MOST_OF_WORD} bytes`);
  if (cwd?.includes('\0') === true) throw invalid('cwd', 'contains a NUL character');
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE.test(name)) throw invalid(`env.${name}`, 'is not a valid name of an environment variable');
    if (value.includes('\0')) throw invalid(`env.${name}`, 'contains a NUL character');
    const byteLength = Buffer.byteLength(name) + 1 + Buffer.byteLength(value);
    if (byteLength > MOST_OF_WORD) throw invalid(`env.${name}`, `has more than ${MOST_OF_WORD} bytes`);
    total += byteLength;
  }
  if (total > MOST_OF_ENV) throw invalid('env', `has more than ${MOST_OF_ENV} bytes`);
  return body;
}

function invalid(param: string, problem: string) {
  return fail('COMMAND_INVALID', { param, message: `${param} ${problem}` });
}

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

const SIGNAL = {
  type: 'object',
  additionalProperties: false,
  required: ['signal'],
  properties: { signal: { type: 'string', enum: COMMAND_SIGNALS } },
  example: { signal: 'SIGTERM' },
} as const;

const SIGNALLED = object({ commandId: shape.uuid, signal: oneOf(...COMMAND_SIGNALS), noop: shape.yes });

export function signalCommandRoute(service: InsideService): Route {
  const read = readBody<Settings<typeof SIGNAL>>(SIGNAL, { maxBytes: 1_024, invalid: 'COMMAND_INVALID' });
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: '/v1/sandboxes/{id}/commands/{commandId}/signal',
    summary: 'Sends a signal to a command and to all it has started; one that has ended is left as it is.',
    body: SIGNAL,
    answers: { 200: { description: 'It is sent; `noop`: the command had ended.', schema: SIGNALLED } },
    errors: [...RUNNING_ERRORS, 'COMMAND_INVALID'],
    handle: async (visit, request, response) => {
      const { accountId, params } = visit;
      await findUnfinished(service, accountId, params['id'] ?? '');
      const { signal } = await read(request, visit);
      const running = await openRunning(service, accountId, params['id'] ?? '');
      const { id: commandId, status } = await findCommand(
        service.database,
        running.sandbox.id,
        params['commandId'] ?? '',
      );
      const isRunning = status === 'RUNNING';
      if (isRunning) {
        const { driver, reference } = running;
        await operate(service, running, { type: 'SIGNAL', headers: request.headers }, () =>
          driver.signal(reference, commandId, signal),
        );
      }
      sendJson(response, 200, { commandId, signal, noop: !isRunning });
    },
  };
}
