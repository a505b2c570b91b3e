import { createHash, timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { answerPrompt, DEMO_MODEL } from './demo-model';
import { chatBody, chatError, chatEvents } from './dialects/chat';
import { DEMO_EMBEDDING, embeddingsBody, inputsOf } from './dialects/embeddings';
import { messagesBody, messagesError, messagesEvents } from './dialects/messages';
import { responsesBody, responsesEvents } from './dialects/responses';
import { type Json, type Protocol, problemOf, readPrompt } from './prompt';

const MODELS = [DEMO_MODEL, DEMO_EMBEDDING];
const PACE_MS = 8;
const MAX_BODY_BYTES = 21 * 1024 * 1024;

const PROTOCOL_OF_PATH: Readonly<Record<string, Protocol>> = {
  '/v1/messages': 'messages',
  '/v1/chat/completions': 'chat',
  '/v1/responses': 'responses',
};

const EMBEDDINGS_PATH = '/v1/embeddings';

/** Creates an upstream that speaks every protocol and has no model, so that the gateway can be tried without a vendor's account. */
export function demoServer(key: string): Server {
  const server = createServer((request, response) => {
    answer(request, response, key).catch(() => response.destroy());
  });
  // The gateway keeps its connections for 30 s, so this server must keep them longer.
  server.keepAliveTimeout = 65_000;
  return server;
}

async function answer(request: IncomingMessage, response: ServerResponse, key: string): Promise<void> {
  const path = (request.url ?? '').split('?')[0] ?? '';
  if (path === '/healthz') return send(response, 200, { status: 'ok', upstream: 'demo' });
  const protocol = PROTOCOL_OF_PATH[path] ?? 'chat';
  const body = await readBody(request);
  if (!showsKey(request, key))
    return refuse(response, protocol, 401, 'The demo upstream was started with another key.');
  if (path === '/v1/models')
    return send(response, 200, { object: 'list', data: MODELS.map((id) => ({ id, object: 'model' })) });
  if (PROTOCOL_OF_PATH[path] === undefined && path !== EMBEDDINGS_PATH)
    return refuse(response, protocol, 404, `There is nothing at ${path}.`);
  if (request.method !== 'POST') return refuse(response, protocol, 405, 'Only POST is answered here.');
  if (body === undefined) return refuse(response, protocol, 413, 'The body is too large.');
  const parsed = parseObject(body);
  if (parsed === undefined) return refuse(response, protocol, 400, 'The body is not a JSON object.');
  if (path === EMBEDDINGS_PATH) return embed(response, parsed);
  const problem = problemOf(parsed, protocol);
  if (problem !== undefined) return refuse(response, protocol, 400, problem);
  if (parsed['model'] !== DEMO_MODEL)
    return refuse(response, protocol, 404, `The demo upstream only has ${DEMO_MODEL}.`);
  await speak(response, parsed, protocol);
}

function embed(response: ServerResponse, body: Json): void {
  const inputs = inputsOf(body);
  if (typeof inputs === 'string') refuse(response, 'chat', 400, inputs);
  else if (body['model'] !== DEMO_EMBEDDING)
    refuse(response, 'chat', 404, `The demo upstream embeds with ${DEMO_EMBEDDING} only.`);
  else send(response, 200, embeddingsBody(body, inputs));
}
const BODIES = { messages: messagesBody, chat: chatBody, responses: responsesBody } as const;
const EVENTS = { messages: messagesEvents, responses: responsesEvents } as const;

async function speak(response: ServerResponse, body: Json, protocol: Protocol): Promise<void> {
  const prompt = readPrompt(body, protocol);
  const said = answerPrompt(prompt);
  if (!prompt.stream) return send(response, 200, BODIES[protocol](said));
  await stream(response, protocol === 'chat' ? chatEvents(said, prompt.includeUsage) : EVENTS[protocol](said));
}

/** Sends events at a model's pace, no faster than the client reads them. Stops when the client disconnects. */
async function stream(response: ServerResponse, events: readonly string[]): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
  try {
    for (const event of events) {
      if (!response.write(event)) await once(response, 'drain', { signal: gone.signal });
      await sleep(PACE_MS, undefined, { signal: gone.signal });
    }
  } catch (error) {
    if (gone.signal.aborted) return;
    throw error;
  }
  response.end();
}

const ERROR_TYPE: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  413: 'request_too_large',
};

/** Sends an error in the form of the request's protocol. */
function refuse(response: ServerResponse, protocol: Protocol, status: number, message: string): void {
  const type = ERROR_TYPE[status] ?? 'api_error';
  const code = status === 401 ? 'invalid_api_key' : null;
  send(response, status, protocol === 'messages' ? messagesError(type, message) : chatError(type, code, message));
}

function send(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
    .end(text);
}

function showsKey({ headers }: IncomingMessage, key: string): boolean {
  const shown = headers['x-api-key'] ?? headers.authorization?.replace(/^Bearer /i, '');
  return typeof shown === 'string' && timingSafeEqual(digest(shown), digest(key));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Reads the whole body. If it is too large, returns undefined and discards the rest. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length <= MAX_BODY_BYTES) chunks.push(chunk);
    else chunks.length = 0;
  }
  return length <= MAX_BODY_BYTES ? Buffer.concat(chunks).toString('utf8') : undefined;
}

function parseObject(text: string): Json | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : undefined;
  } catch {
    return undefined;
  }
}
