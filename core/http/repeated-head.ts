import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** The last request head of a connection. For each function that reads heads, it has the cached result. */
interface LastHead {
  request: IncomingMessage;
  readonly rawHeaders: readonly string[];
  readonly results: Map<unknown, unknown>;
}

const LAST = Symbol('the last head of this connection');

type KnownSocket = Socket & { [LAST]?: LastHead };

/**
 * Returns a function that caches what `read` returns while the connection repeats its head: the same names and values in the same order,
 * except `content-length`. The result must depend on the head alone. Whether an API key is still valid, or an address permitted, depends on
 * more than the head.
 */
export function oncePerHead<T extends object>(read: (request: IncomingMessage) => T): (request: IncomingMessage) => T {
  return (request) => {
    const { results } = lastHead(request);
    const known = results.get(read) as T | undefined;
    if (known !== undefined) return known;
    const result = read(request);
    results.set(read, result);
    return result;
  };
}

function lastHead(request: IncomingMessage): LastHead {
  const socket: KnownSocket = request.socket;
  const last = socket[LAST];
  if (last?.request === request) return last;
  if (last !== undefined && isRepeated(last.rawHeaders, request.rawHeaders)) {
    last.request = request;
    return last;
  }
  const head: LastHead = { request, rawHeaders: request.rawHeaders, results: new Map() };
  socket[LAST] = head;
  return head;
}

function isRepeated(known: readonly string[], given: readonly string[]): boolean {
  if (known.length !== given.length) return false;
  for (let at = 0; at < given.length; at += 2) {
    const name = given[at] as string;
    if (name !== known[at]) return false;
    if (given[at + 1] !== known[at + 1] && !isLength(name)) return false;
  }
  return true;
}

function isLength(name: string): boolean {
  return name.length === 14 && name.toLowerCase() === 'content-length';
}
