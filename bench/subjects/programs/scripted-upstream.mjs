/**
 * The upstream of streams and large bodies, in the protocol of the path. The last message of a call has its script, so that every gateway passes it:
 * {events, gapMs} sends paced events, each with its send time; {idle: true} sends one event and stays silent; {floodBytes} sends events as fast as
 * they are read. Without a script it answers normally once it has read the whole body.
 */
import { createServer } from 'node:http';
import { listen } from './announce.mjs';

const counters = { floodBytes: 0, floodStreams: 0, bodyBytes: 0, calls: 0 };

listen(
  createServer(async (request, response) => {
    if (request.url === '/counters') return response.end(JSON.stringify(counters));
    const script = readScript(await readBeginning(request));
    counters.calls += 1;
    if (script === undefined) return answerWhole(request, response);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    const speak = ({ '/v1/responses': responses, '/v1/messages': messages }[request.url] ?? chat)();
    response.write(speak.begin);
    if (script.idle) response.write(speak.event('t0'));
    else if (script.floodBytes !== undefined) flood(response, speak, script.floodBytes);
    else pace(response, speak, script);
  }),
);

/** Reads the beginning of a body, because scripts are short, and discards the rest. */
async function readBeginning(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes < 100_000) chunks.push(chunk);
  }
  counters.bodyBytes += bytes;
  return chunks;
}

function readScript(chunks) {
  try {
    const { stream, messages, input = messages } = JSON.parse(Buffer.concat(chunks));
    return stream ? JSON.parse(input.at(-1).content) : undefined;
  } catch {
    return undefined;
  }
}

function answerWhole({ url }, response) {
  const { CHAT_ANSWER, MESSAGES_ANSWER, RESPONSES_ANSWER } = process.env;
  const others = { '/v1/messages': MESSAGES_ANSWER, '/v1/responses': RESPONSES_ANSWER };
  const text = others[url] ?? CHAT_ANSWER;
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function pace(response, speak, { events, gapMs }) {
  let written = 0;
  const write = () => {
    response.write(speak.event(`t${nowUs()}`));
    written += 1;
    if (written < events) return;
    clearInterval(timer);
    response.end(speak.end());
  };
  const timer = setInterval(write, gapMs);
  response.on('close', () => clearInterval(timer));
  write();
}

function flood(response, speak, bytes) {
  const chunk = speak.event('x'.repeat(4_000));
  let left = bytes;
  counters.floodStreams += 1;
  const fill = () => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length;
      counters.floodBytes += chunk.length;
      if (!response.write(chunk)) return;
    }
    response.end(speak.end());
  };
  response.on('drain', fill);
  fill();
}

/** Reads the clock that all processes of a machine share. */
function nowUs() {
  const [seconds, nanoseconds] = process.hrtime();
  return Math.round(seconds * 1e6 + nanoseconds / 1e3);
}

/** Makes a Chat stream: the text before the first event, an event with content, and the text after the last event. */
function chat() {
  return {
    begin: '',
    event: (text) =>
      `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench-model","choices":[{"index":0,"delta":{"content":"${text}"},"finish_reason":null}]}\n\n`,
    end: () => CHAT_END,
  };
}

const CHAT_END = [
  '{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench-model","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
  '{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench-model","choices":[],"usage":{"prompt_tokens":38,"completion_tokens":200,"total_tokens":238}}',
  '[DONE]',
]
  .map((data) => `data: ${data}\n\n`)
  .join('');

/** Makes a Messages stream. */
function messages() {
  const named = (type, rest) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
  const message = { id: 'msg_bench', type: 'message', role: 'assistant', model: 'bench-model', content: [] };
  const usage = { input_tokens: 38, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
  return {
    begin:
      named('message_start', { message: { ...message, stop_reason: null, stop_sequence: null, usage } }) +
      named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    event: (text) => named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    end: () =>
      named('content_block_stop', { index: 0 }) +
      named('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: { output_tokens: 200 },
      }) +
      named('message_stop', {}),
  };
}

/** Makes a Responses stream. Its events are numbered, and those after the last delta repeat the whole text. */
function responses() {
  const at = { item_id: 'msg_bench', output_index: 0, content_index: 0 };
  const part = (text) => ({ type: 'output_text', text, annotations: [] });
  const item = (status, content) => ({ id: 'msg_bench', type: 'message', status, role: 'assistant', content });
  const response = (status, rest) => ({
    response: {
      id: 'resp_bench',
      object: 'response',
      created_at: 1_790_000_000,
      status,
      model: 'bench-model',
      ...rest,
    },
  });
  let number = 0;
  let whole = '';
  const named = (name, rest) => {
    const type = `response.${name}`;
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: number++, ...rest })}\n\n`;
  };
  return {
    begin:
      named('created', response('in_progress', { output: [] })) +
      named('in_progress', response('in_progress', { output: [] })) +
      named('output_item.added', { output_index: 0, item: item('in_progress', []) }) +
      named('content_part.added', { ...at, part: part('') }),
    event: (text) => {
      whole += text;
      return named('output_text.delta', { ...at, delta: text, logprobs: [] });
    },
    end: () => {
      const done = item('completed', [part(whole)]);
      return (
        named('output_text.done', { ...at, text: whole }) +
        named('content_part.done', { ...at, part: part(whole) }) +
        named('output_item.done', { output_index: 0, item: done }) +
        named('completed', response('completed', { output: [done], usage: RESPONSES_USAGE }))
      );
    },
  };
}

const RESPONSES_USAGE = { input_tokens: 38, output_tokens: 200, total_tokens: 238 };
