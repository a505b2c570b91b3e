import { bytesOf, readAll } from '../wire/chunk-reader';
import { LAST_EVENTS } from '../wire/socket-frames';
import { SseSplitter } from '../wire/sse';
import type { UpstreamExchange } from '../wire/upstream-exchange';
import { errorEventOf } from './error-event';

/** Where the frames of an answer go. */
export interface FrameWriter {
  /** `isLast`: nothing of this answer follows. Resolves when there is room for more; undefined when there is. */
  give(text: string, isLast: boolean): Promise<void> | undefined;
  /** A sign of life. */
  giveSign(): void;
}

/** As for answers of upstreams that are not streamed. */
const LARGEST_BODY_BYTES = 64 * 1024 * 1024;

/**
 * Gives the answer to one call as frames: the data of each event is one, and a refusal is one error event.
 * @throws when the answer breaks off
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

/** An upstream that does not stream has sent the response in one piece. */
function asLastEvent(body: Buffer): string {
  return `{"type":"response.completed","response":${body.toString('utf8')}}`;
}
