/**
 * A relay on node:http and undici that does what any gateway must, and no more: it reads the body, parses it, asks the
 * upstream with the bytes as they came, parses the answer (a stream is passed on as it comes), and gives it to the caller.
 * What a bill adds goes into `bill`: `reserve` before the upstream is asked, and the settlement that it returns afterwards.
 */
import { createServer } from 'node:http';
import { Pool } from 'undici';
import { listen } from './announce.mjs';

const NO_BILL = { reserve: undefined };

export function serveRelay({ reserve } = NO_BILL) {
  const upstream = new Pool(process.env.UPSTREAM_URL, { headersTimeout: 0, bodyTimeout: 0 });
  listen(
    createServer((request, response) => {
      relay(upstream, reserve, request, response).catch((error) => {
        if (!response.headersSent) response.writeHead(502);
        response.end(String(error));
      });
    }),
  );
}

async function relay(upstream, reserve, request, response) {
  const body = await readAll(request);
  const asked = JSON.parse(body);
  const settle = reserve === undefined ? undefined : await reserve(asked);
  const answer = await upstream.request({
    path: request.url,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  });
  const type = answer.headers['content-type'];
  if (type?.startsWith('text/event-stream')) {
    await passOn(answer, response, type);
    await settle?.(undefined);
    return;
  }
  const text = Buffer.from(await answer.body.arrayBuffer());
  const { usage } = JSON.parse(text);
  response.writeHead(answer.statusCode, { 'content-type': type, 'content-length': text.length });
  response.end(text);
  await settle?.(usage);
}

/** By events: an async iterator costs a bare relay a tenth of its calls. */
function readAll(request) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => resolve(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)));
    request.on('error', reject);
  });
}

/** Ends when the stream has ended or either side has left. */
function passOn(answer, response, type) {
  response.writeHead(answer.statusCode, { 'content-type': type });
  return new Promise((done) => {
    answer.body.on('error', () => response.destroy());
    response.on('close', () => {
      answer.body.destroy();
      done();
    });
    answer.body.pipe(response);
  });
}
