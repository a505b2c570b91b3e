/**
 * The upstream of streams and of large bodies. The last message of a call is its script, so that it comes through every
 * gateway: {events, gapMs} paced events, each with the time it was written; {idle: true} one event and then silence;
 * {floodBytes} events as fast as they are taken. Without a script it answers with the usual body once it has read all.
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
    if (script.idle) response.write(event('t0'));
    else if (script.floodBytes !== undefined) flood(response, script.floodBytes);
    else pace(response, script);
  }),
);

/** Scripts are short; of a large body nothing is kept. */
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
    const { stream, messages } = JSON.parse(Buffer.concat(chunks));
    return stream ? JSON.parse(messages.at(-1).content) : undefined;
  } catch {
    return undefined;
  }
}

function answerWhole({ url }, response) {
  const text = url.endsWith('/messages') ? process.env.MESSAGES_ANSWER : process.env.CHAT_ANSWER;
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function pace(response, { events, gapMs }) {
  let written = 0;
  const write = () => {
    response.write(event(`t${nowUs()}`));
    written += 1;
    if (written < events) return;
    clearInterval(timer);
    response.end(END);
  };
  const timer = setInterval(write, gapMs);
  response.on('close', () => clearInterval(timer));
  write();
}

function flood(response, bytes) {
  const chunk = event('x'.repeat(4_000));
  let left = bytes;
  counters.floodStreams += 1;
  const fill = () => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length;
      counters.floodBytes += chunk.length;
      if (!response.write(chunk)) return;
    }
    response.end(END);
  };
  response.on('drain', fill);
  fill();
}

/** The clock that all processes of a machine share. */
function nowUs() {
  const [seconds, nanoseconds] = process.hrtime();
  return Math.round(seconds * 1e6 + nanoseconds / 1e3);
}

function event(content) {
  return `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench-model","choices":[{"index":0,"delta":{"content":"${content}"},"finish_reason":null}]}\n\n`;
}

const END = [
  '{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench-model","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
  '{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1790000000,"model":"bench-model","choices":[],"usage":{"prompt_tokens":38,"completion_tokens":200,"total_tokens":238}}',
  '[DONE]',
]
  .map((data) => `data: ${data}\n\n`)
  .join('');
