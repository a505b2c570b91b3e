import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { GatewayError } from '../../../core/base/errors';
import { Call, type ModelRequest } from '../../../core/calls/call';
import type { Gateway } from '../../../core/gateway/gateway';
import { REQUEST_TABLES } from '../../../core/protocols/request-tables';
import modelRequest from '../../../policies/model-request';

export interface Sent {
  readonly url?: string;
  readonly headers?: Record<string, string>;
  readonly settings?: object;
  /** How many bytes arrive at once. */
  readonly pieceBytes?: number;
}

const SETTINGS = {
  forwardHeaderPrefixes: ['anthropic-', 'protoa-'],
  roles: REQUEST_TABLES.messages.roles,
  bodyTimeout: '120s',
  slowBodyTimeout: '30s',
  sharedObjects: [],
  unknownMembers: 'byValue',
};

const KEY = { accountId: 'account', keyId: 'key', settings: { rev: 0, name: '', allowedModels: undefined } };

const RICH = {
  readAccount: async () => ({ status: 'active', availableE8: 1n }),
  readKey: async () => ({ status: 'active' }),
};

/** Makes a request as Node hands it over, before its body has arrived. */
export function openRequest(sent: Sent = {}): PassThrough & IncomingMessage {
  const stream = new PassThrough({ highWaterMark: 1_000_000_000 });
  return Object.assign(stream, {
    url: sent.url ?? '/v1/messages',
    socket: {},
    rawHeaders: [],
    headers: { 'content-type': 'application/json', ...sent.headers },
  }) as unknown as PassThrough & IncomingMessage;
}

export function runPolicy(
  request: IncomingMessage,
  settings: object = {},
): { call: Call; result: Promise<ModelRequest>; isAtOnce: () => boolean } {
  const response = new EventEmitter() as unknown as ServerResponse;
  const call = new Call(request, response);
  call.key = KEY;
  const step = modelRequest.prepare({ ...SETTINGS, ...settings }, {
    calls: RICH,
    catalog: { upstreams: [] },
    vendorResources: { find: async () => undefined, findItems: async () => new Map() },
  } as unknown as Gateway);
  let isAtOnce = false;
  const read = async () => {
    const answer = step(call, request, response);
    isAtOnce = !(answer instanceof Promise);
    const fields = await answer;
    if (fields?.request === undefined) throw new Error('no request was left');
    return fields.request;
  };
  return { call, result: read(), isAtOnce: () => isAtOnce };
}

/** Returns what the policy reads from a body. */
export async function ask(body: unknown, sent: Sent = {}): Promise<ModelRequest> {
  const request = openRequest(sent);
  const { result } = runPolicy(request, sent.settings);
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  const pieceBytes = sent.pieceBytes ?? bytes.length;
  for (let at = 0; at < bytes.length; at += pieceBytes) request.write(bytes.subarray(at, at + pieceBytes));
  request.end();
  return result;
}

/** Returns the refusal as `CODE param`, or `accepted`, or `extra param` for what the vendor charges apart. */
export async function refusal(asked: Promise<object>): Promise<string> {
  try {
    const given = await asked;
    const [extra] = ('reading' in given ? (given as ModelRequest).reading.extras : undefined) ?? [];
    return extra === undefined ? 'accepted' : `extra ${extra.param}`;
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return `${error.code} ${error.options.param ?? ''}`.trim();
  }
}
