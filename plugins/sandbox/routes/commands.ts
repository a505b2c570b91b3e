import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Route } from '../../../core/api/route';
import { fail } from '../../../core/base/errors';
import type { Settings } from '../../../core/base/settings';
import { sendJson } from '../../../core/http/http';
import { flagReader, integerReader, readQuery } from '../../../core/http/query';
import { listOf, object, oneOf, shape } from '../../../core/http/shape';
import { findUnfinished, openRunning, operate, RUNNING_ERRORS, type RunningSandbox } from '../admission/access';
import {
  COMMAND,
  COMMAND_EVENTS,
  COMMAND_STATUS,
  commandView,
  followCommand,
  sendEvents,
  TRUNCATED,
} from '../commands/events';
import { textOf } from '../commands/kept-output';
import type { LiveCommand } from '../commands/live-command';
import { type Command, findCommand, readOutput } from '../commands/store';
import type { InstanceService } from '../instance';
import { findSandbox } from '../store/queries';
import { COMMAND_SIGNALS } from '../suppliers/supplier';
import { bodyReader, byKey, type KeyVisit } from './parts';

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

const MAX_BYTES = 4 * 1_048_576;
/** The most bytes that Linux accepts in one argument. The limit of all arguments is higher. */
const MAX_WORD_BYTES = 131_071;
const MAX_ENV_BYTES = 1_048_576;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

type Body = Settings<typeof NEW_COMMAND>;

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

const SIGNAL = {
  type: 'object',
  additionalProperties: false,
  required: ['signal'],
  properties: { signal: { type: 'string', enum: COMMAND_SIGNALS } },
  example: { signal: 'SIGTERM' },
} as const;

const SIGNALLED = object({ commandId: shape.uuid, signal: oneOf(...COMMAND_SIGNALS), noop: shape.yes });

/** The routes of commands in a sandbox. */
export function commandRoutes(service: InstanceService): readonly Route[] {
  const { database, commands } = service;
  const readCommand = bodyReader<Body>(NEW_COMMAND, MAX_BYTES, { INVALID_FIELD: 'COMMAND_INVALID' });
  const readSignal = bodyReader<Settings<typeof SIGNAL>>(SIGNAL, 1_024, { INVALID_FIELD: 'COMMAND_INVALID' });
  const find = async ({ accountId, params }: KeyVisit) => {
    const { id } = await findSandbox(database, accountId, params['id'] ?? '');
    return findCommand(database, id, params['commandId'] ?? '');
  };
  return [
    byKey(
      'POST',
      '/v1/sandboxes/{id}/commands',
      'Runs a shell command: waits for its end, streams its output as events, or leaves it running.',
      {
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
          const id = visit.params['id'] ?? '';
          await findUnfinished(service, visit.accountId, id, 'exec');
          const body = checkText(await readCommand(request, visit));
          const running = await openRunning(service, visit.accountId, id, 'exec');
          if (request.headers.accept?.includes('text/event-stream') === true) {
            return runFollowed(service, running, body, request, response);
          }
          const live = await commands.start(running, body, request.headers);
          if (body.background) return sendJson(response, 201, commandView(live.command, NOTHING_YET));
          const ended = await Promise.race([live.ended, untilStopping(service, live)]);
          const output = { stdout: live.output.text('stdout'), stderr: live.output.text('stderr') };
          sendJson(response, 201, commandView(ended, output));
        },
      },
    ),
    byKey(
      'GET',
      '/v1/sandboxes/{id}/commands/{commandId}',
      'The state of a command, with the last mebibyte of its output.',
      {
        answers: { 200: { description: 'The command.', schema: COMMAND } },
        errors: ['SANDBOX_NOT_FOUND'],
        handle: async (visit, _request, response) => {
          const command = await find(visit);
          const pieces = await readOutput(database, command.id, 0);
          const output = { stdout: textOf(pieces, 'stdout'), stderr: textOf(pieces, 'stderr') };
          sendJson(response, 200, commandView(command, output));
        },
      },
    ),
    byKey(
      'GET',
      '/v1/sandboxes/{id}/commands/{commandId}/logs',
      "A command's output after a sequence number; with follow=true as events until it ends.",
      {
        query: FILTERS,
        headers: { 'Last-Event-ID': 'The same as `after`, as browsers say it.' },
        answers: { 200: { description: 'The output.', schema: LOGS, orAs: COMMAND_EVENTS } },
        errors: ['SANDBOX_NOT_FOUND', 'COMMAND_LIMIT'],
        handle: async (visit, request, response) => {
          const { follow = false, after = lastEventOf(request) } = readQuery(visit.query, FILTERS);
          const command = await find(visit);
          if (follow) {
            const endFollowing = commands.addFollower(command.sandboxId);
            return sendEvents(response, 200, (left) => followCommand(service, command, after, left), endFollowing);
          }
          const pieces = await readOutput(database, command.id, after);
          sendJson(response, 200, {
            items: pieces.map(({ sequence, stream, bytes }) => ({ sequence, stream, data: bytes.toString() })),
            nextAfter: pieces.at(-1)?.sequence ?? after,
            status: command.status,
            truncated: { stdout: command.stdoutTruncated, stderr: command.stderrTruncated },
          });
        },
      },
    ),
    byKey(
      'POST',
      '/v1/sandboxes/{id}/commands/{commandId}/signal',
      'Sends a signal to a command and to all it has started; one that has ended is left as it is.',
      {
        body: SIGNAL,
        answers: { 200: { description: 'It is sent; `noop`: the command had ended.', schema: SIGNALLED } },
        errors: [...RUNNING_ERRORS, 'COMMAND_INVALID'],
        handle: async (visit, request, response) => {
          await findUnfinished(service, visit.accountId, visit.params['id'] ?? '');
          const { signal } = await readSignal(request, visit);
          const running = await openRunning(service, visit.accountId, visit.params['id'] ?? '');
          const { id: commandId, status } = await find(visit);
          const isRunning = status === 'RUNNING';
          if (isRunning) {
            await operate(service, running, { type: 'SIGNAL', headers: request.headers }, () =>
              running.driver.signal(running.reference, commandId, signal),
            );
          }
          sendJson(response, 200, { commandId, signal, noop: !isRunning });
        },
      },
    ),
  ];
}

/** Runs a command and streams its events to the client. It starts no command if too many clients follow commands of the sandbox. */
async function runFollowed(
  service: InstanceService,
  running: RunningSandbox,
  body: Body,
  { headers }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const endFollowing = service.commands.addFollower(running.sandbox.id);
  const live = await service.commands.start(running, body, headers).catch((error: unknown) => {
    endFollowing();
    throw error;
  });
  await sendEvents(response, 201, (left) => eventsOf(service, live, left), endFollowing);
}

const LOOK_EVERY_MS = 500;

/** Waits until the command ends or the process is stopping. In the second case, the caller gets a running command and asks again. */
async function untilStopping({ gateway }: InstanceService, { command, ended }: LiveCommand): Promise<Command> {
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  while (!hasEnded && !gateway.isStopping()) await sleep(LOOK_EVERY_MS, undefined, { ref: false });
  return command;
}

const NOTHING_YET = { stdout: '', stderr: '' };

async function* eventsOf(service: InstanceService, { command }: LiveCommand, left: AbortSignal) {
  const { stdout: _, stderr: __, ...started } = commandView(command, NOTHING_YET);
  yield { event: 'start', sequence: 0, data: started } as const;
  yield* followCommand(service, command, 0, left);
}

/** Rejects text that no process can receive as an argument or variable. @throws COMMAND_INVALID */
function checkText(body: Body): Body {
  const { command, cwd, env = {} } = body;
  let total = 0;
  if (command.includes('\0')) throw invalid('command', 'contains a NUL character');
  if (Buffer.byteLength(command) > MAX_WORD_BYTES) throw invalid('command', `has more than ${MAX_WORD_BYTES} bytes`);
  if (cwd?.includes('\0') === true) throw invalid('cwd', 'contains a NUL character');
  for (const [name, value] of Object.entries(env)) {
    if (!VARIABLE.test(name)) throw invalid(`env.${name}`, 'is not a valid name of an environment variable');
    if (value.includes('\0')) throw invalid(`env.${name}`, 'contains a NUL character');
    const byteLength = Buffer.byteLength(name) + 1 + Buffer.byteLength(value);
    if (byteLength > MAX_WORD_BYTES) throw invalid(`env.${name}`, `has more than ${MAX_WORD_BYTES} bytes`);
    total += byteLength;
  }
  if (total > MAX_ENV_BYTES) throw invalid('env', `has more than ${MAX_ENV_BYTES} bytes`);
  return body;
}

function invalid(param: string, problem: string) {
  return fail('COMMAND_INVALID', { param, message: `${param} ${problem}` });
}

/** Returns the `Last-Event-ID` that a browser's EventSource sends when it reconnects. */
function lastEventOf({ headers }: IncomingMessage): number {
  const text = String(headers['last-event-id'] ?? '');
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}
