import { bytesOf, readAll } from '../wire/chunk-reader';
import { LAST_EVENTS } from '../wire/socket-frames';
import { SseSplitter } from '../wire/sse';
import type { UpstreamExchange } from '../wire/upstream-exchange';
import { errorEventOf } from './error-event';

/** The destination of an answer's frames. */
export interface FrameWriter {
  /** Sends a frame; `isLast` marks the last one of this answer. Resolves when there is room for more; undefined if there already is. */
  give(text: string, isLast: boolean): Promise<void> | undefined;
  /** Sends a sign of life. */
  giveSign(): void;
}

/** The same limit as for unstreamed answers of upstreams. */
const LARGEST_BODY_BYTES = 64 * 1024 * 1024;

/**
 * Sends the answer to one call as frames. The data of each event is a frame, and a refusal is one error event.
 * @throws if the answer breaks off
 */
export async function giveAnswer(exchange: UpstreamExchange, frames: FrameWriter): Promise<void> {
  const head = await exchange.head;
  const { status, headers } = head;
  if (String(headers['content-type']).startsWith('text/event-stream')) return giveEvents(exchange, frames);
  const body = await readAll(exchange, LARGEST_BODY_BYTES);
  await frames.give(status < 300 ? asLastEvent(body) : errorEventOf(head, body), true);
}

async function giveEvents(exchange: UpstreamExchange, frames: FrameWriter): Promise<void> {
  const splitter = new SseSplitter();
  for await (const chunk of bytesOf(exchange)) {
    for (const { name = '', data } of splitter.push(chunk)) {
      if (data === undefined) frames.giveSign();
      else await frames.give(data, LAST_EVENTS.has(name));
    }
  }
}

/** Returns the last event for an unstreamed response, which the upstream sent in one piece. */
function asLastEvent(body: Buffer): string {
  return `{"type":"response.completed","response":${body.toString('utf8')}}`;
}
