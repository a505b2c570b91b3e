import { createGzip } from 'node:zlib';
import { type Exchange, orClosed, pause, type Script, untilClosed, write } from './script';

/** How a stream stops before its last event. */
export type Cut =
  /** Ends the chunked body properly, as if it were complete. */
  | 'end'
  /** Closes the connection without ending the chunked body. */
  | 'fin'
  /** Closes the connection within a chunk, after half of the next event. */
  | 'fin-mid-chunk'
  | 'reset'
  /** Stays silent until the client disconnects. */
  | 'stall';

export interface StreamOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** The delay before the head of the response. */
  readonly headersDelayMs?: number;
  /** The delay before the first content. */
  readonly firstTokenDelayMs?: number;
  /** The delay between any two events. */
  readonly delayMs?: number;
  /** Waits for the promise before this event, counted from 0. */
  readonly waitFor?: { readonly before: number; readonly until: Promise<unknown> };
  /** The number of events before `cut`. */
  readonly cutAfter?: number;
  readonly cut?: Cut;
  /** Sends the bytes in chunks of these sizes, used in turn, regardless of event boundaries. */
  readonly splitBytes?: number | readonly number[];
  /** Compresses without a request for it. */
  readonly gzip?: boolean;
  /** Ends lines with CR LF. */
  readonly crlf?: boolean;
  /** Omits the protocol's own end: `message_stop`, `[DONE]`. */
  readonly withoutDone?: boolean;
  /** Replaces this event, counted from 0, by this text. */
  readonly malformedAt?: { readonly event: number; readonly text?: string };
  /** Changes the events last. */
  readonly edit?: (events: readonly string[]) => readonly string[];
}

/** A stream's script with its bytes, for an exact comparison. */
export interface StreamScript extends Script {
  /** The events as they are sent, including those that `cutAfter` omits. */
  readonly events: readonly string[];
  /** All events as one text. */
  readonly text: string;
}

/** Streams events as `text/event-stream`; the first `preamble` events come before the first content. */
export function stream(events: readonly string[], preamble: number, options: StreamOptions = {}): StreamScript {
  const shaped = shape(events, options);
  return {
    events: shaped,
    text: shaped.join(''),
    answer: (exchange) => deliver(exchange, shaped, preamble, options),
  };
}

function shape(events: readonly string[], options: StreamOptions): readonly string[] {
  const { malformedAt, withoutDone = false, crlf = false, edit } = options;
  let shaped = withoutDone ? events.slice(0, -1) : [...events];
  if (malformedAt !== undefined) {
    shaped = shaped.with(malformedAt.event, malformedAt.text ?? 'data: {"half": \n\n');
  }
  if (edit !== undefined) shaped = [...edit(shaped)];
  return crlf ? shaped.map((event) => event.replaceAll('\n', '\r\n')) : shaped;
}

async function deliver(
  exchange: Exchange,
  events: readonly string[],
  preamble: number,
  options: StreamOptions,
): Promise<void> {
  const { response, closed } = exchange;
  await pause(options.headersDelayMs ?? 0, closed);
  if (closed.aborted) return;
  response.writeHead(options.status ?? 200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    ...(options.gzip === true ? { 'content-encoding': 'gzip' } : {}),
    ...options.headers,
  });
  response.flushHeaders();
  const out = options.gzip === true ? zipped(exchange) : split(exchange, options.splitBytes);
  const last = options.cut === undefined ? events.length : (options.cutAfter ?? events.length);
  for (const [index, event] of events.slice(0, last).entries()) {
    if (index > 0) await pause(options.delayMs ?? 0, closed);
    if (index === preamble) await pause(options.firstTokenDelayMs ?? 0, closed);
    if (options.waitFor?.before === index) await orClosed(options.waitFor.until, closed);
    if (closed.aborted) return;
    await out.send(event);
  }
  await out.flush();
  await finish(exchange, options.cut ?? 'end', events[last] ?? 'data: {"half": "of an event"}\n\n');
}

interface Out {
  send(text: string): Promise<void>;
  flush(): Promise<void>;
}

/** Writes in pieces. Each write is a separate chunk, and HTTP parsers pass chunks on one by one. */
function split(exchange: Exchange, splitBytes: number | readonly number[] | undefined): Out {
  if (splitBytes === undefined) return { send: (text) => write(exchange, text), flush: () => Promise.resolve() };
  const sizes = typeof splitBytes === 'number' ? [splitBytes] : splitBytes;
  let waiting = Buffer.alloc(0);
  let turn = 0;
  return {
    send: async (text) => {
      waiting = Buffer.concat([waiting, Buffer.from(text)]);
      for (;;) {
        const size = Math.max(1, sizes[turn % sizes.length] ?? 1);
        if (waiting.length < size) return;
        turn += 1;
        const piece = waiting.subarray(0, size);
        waiting = waiting.subarray(size);
        await write(exchange, piece);
      }
    },
    flush: async () => {
      if (waiting.length > 0) await write(exchange, waiting);
    },
  };
}

function zipped(exchange: Exchange): Out {
  const gzip = createGzip();
  gzip.on('data', (bytes: Buffer) => exchange.response.write(bytes));
  return {
    send: (text) =>
      new Promise((done) => {
        gzip.write(text);
        gzip.flush(() => done());
      }),
    flush: () =>
      new Promise((done) => {
        gzip.once('end', () => done());
        gzip.end();
      }),
  };
}

async function finish(exchange: Exchange, cut: Cut, next: string): Promise<void> {
  const { response, closed } = exchange;
  if (closed.aborted) return;
  if (cut === 'stall') return untilClosed(closed);
  if (cut === 'end') {
    response.end();
    return;
  }
  exchange.breaking();
  const { socket } = response;
  if (cut === 'reset') socket?.resetAndDestroy();
  else if (cut === 'fin') socket?.end();
  else {
    const bytes = Buffer.from(next);
    socket?.end(
      `${bytes.length.toString(16)}\r\n${bytes.subarray(0, Math.ceil(bytes.length / 2)).toString('latin1')}`,
      'latin1',
    );
  }
}
