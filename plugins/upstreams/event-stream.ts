import type { EventStreamCodec } from '@smithy/eventstream-codec';
import { asObject, asText } from '../../core/base/json-values';
import { parseJson } from '../../core/base/parse-json';
import type { FrameDecoder } from '../../core/catalog/upstream';

/** The bytes before the headers: the message's length, the headers' length, and a checksum. */
const PRELUDE_BYTES = 12;
/** The largest message that the gateway accepts, in bytes; real events are far smaller. */
const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

/** The largest event that the gateway parses to find the name of the event, in bytes. */
const MAX_NAMED_BYTES = 1024 * 1024;

let codec: EventStreamCodec | undefined;

/** Loads the codec. This happens when the first stream of Amazon arrives. */
function loadCodec(): EventStreamCodec {
  const library = require('@smithy/eventstream-codec') as typeof import('@smithy/eventstream-codec');
  return new library.EventStreamCodec(
    (bytes) => Buffer.from(bytes).toString('utf8'),
    (text) => Buffer.from(text),
  );
}

/** The server-sent event that stands for a malformed message. */
const UNREADABLE = 'data: not an event stream of Amazon\n\n';

/** A message of Amazon's event stream: its headers and its body. */
export type EventStreamMessage = ReturnType<EventStreamCodec['decode']>;

/** Converts Amazon's event stream to server-sent events. */
export class EventStreamDecoder implements FrameDecoder {
  /**
   * Sets how messages are converted.
   * @param eventOf returns the text of the server-sent event for a message, or an empty text for none
   */
  constructor(private readonly eventOf: (message: EventStreamMessage) => string = messagesEvent) {}

  /** The bytes received of the next message, and how many bytes are needed to continue: first a prelude, then the whole message. */
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #neededBytes = PRELUDE_BYTES;
  #isBroken = false;

  push(chunk: Buffer): string {
    if (this.#isBroken) return '';
    this.#waiting.push(chunk);
    this.#waitingBytes += chunk.length;
    return this.#waitingBytes < this.#neededBytes ? '' : this.#read(Buffer.concat(this.#waiting));
  }

  /** Converts all complete messages, and keeps the remaining bytes. */
  #read(bytes: Buffer): string {
    let text = '';
    let from = 0;
    let length = PRELUDE_BYTES;
    codec ??= loadCodec();
    while (bytes.length - from >= PRELUDE_BYTES) {
      length = bytes.readUInt32BE(from);
      if (length < PRELUDE_BYTES || length > MAX_MESSAGE_BYTES) return text + this.#break();
      if (bytes.length - from < length) break;
      try {
        text += this.eventOf(codec.decode(bytes.subarray(from, from + length)));
      } catch {
        return text + this.#break();
      }
      from += length;
      length = PRELUDE_BYTES;
    }
    this.#waiting = [bytes.subarray(from)];
    this.#waitingBytes = bytes.length - from;
    this.#neededBytes = length;
    return text;
  }

  #break(): string {
    this.#isBroken = true;
    this.#waiting = [];
    return UNREADABLE;
  }
}

/** Returns the failure that a message reports; undefined if the message is an event. */
export function exceptionIn({
  headers,
  body,
}: EventStreamMessage): { readonly name: string; readonly message: string } | undefined {
  const type = asText(headers[':message-type']?.value);
  if (type === 'event') return undefined;
  const payload = asObject(parseJson(Buffer.from(body).toString('utf8')));
  const name = asText(headers[type === 'exception' ? ':exception-type' : ':error-code']?.value);
  return { name, message: asText(payload?.['message']) || asText(headers[':error-message']?.value) };
}

/** Returns the Messages event inside a message. */
function messagesEvent(streamed: EventStreamMessage): string {
  const exception = exceptionIn(streamed);
  if (exception !== undefined) return errorEvent(exception.name, exception.message);
  const { headers, body } = streamed;
  const payload = asObject(parseJson(Buffer.from(body).toString('utf8')));
  // Amazon may add other kinds of events. The gateway ignores them, because they carry no part of the answer.
  if (headers[':event-type']?.value !== 'chunk') return '';
  const data = Buffer.from(asText(payload?.['bytes']), 'base64').toString('utf8');
  const name = asText(asObject(data.length > MAX_NAMED_BYTES ? undefined : parseJson(data))?.['type']);
  const named = /^\w+$/.test(name) ? `event: ${name}\n` : '';
  return `${named}data: ${data.replaceAll(/\r\n|\r|\n/g, '\ndata: ')}\n\n`;
}

/** The Messages error types for Amazon's names of failures. */
const ERROR_TYPES: Readonly<Record<string, string>> = {
  throttlingException: 'rate_limit_error',
  serviceUnavailableException: 'overloaded_error',
  modelTimeoutException: 'timeout_error',
  validationException: 'invalid_request_error',
};

function errorEvent(name: string, message: string): string {
  const error = { type: ERROR_TYPES[name] ?? 'api_error', message: message || name };
  return `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`;
}
