/**
 * A relay on node:http and undici with the minimum of any gateway: it reads and parses the body, sends the same bytes upstream, parses the answer
 * (streams are relayed), and returns it. `reserve` adds billing: it returns the settlement that runs at the end. The relay shows what Node can do. It
 * uses events instead of iterators, and undici's `dispatch` instead of `request`: 182 µs of CPU a call against 220 to 240 µs (median of nine runs
 * each, on a busy machine).
 */
import { createServer } from 'node:http';
import { Pool } from 'undici';
import { listen } from './announce.mjs';

export function serveRelay({ reserve } = {}) {
  const upstream = new Pool(process.env.UPSTREAM_URL, { headersTimeout: 0, bodyTimeout: 0 });
  listen(
    createServer((request, response) => {
      relay(upstream, reserve, request, response).catch((error) => fail(response, error));
    }),
  );
}

async function relay(upstream, reserve, request, response) {
  const body = await readAll(request);
  const asked = JSON.parse(body);
  const settle = reserve === undefined ? undefined : await reserve(asked);
  const call = { path: request.url, method: 'POST', headers: { 'content-type': 'application/json' }, body };
  upstream.dispatch(call, new Answer(response, settle));
}

function readAll(request) {
  return new Promise((resolve, reject) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => resolve(join(chunks)));
    request.on('error', reject);
  });
}

function join(chunks) {
  return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
}

function fail(response, error) {
  if (!response.headersSent) response.writeHead(502);
  response.end(String(error));
}

/** Relays an answer: a stream as fast as the client reads, ended when either side disconnects; any other answer is parsed whole. */
class Answer {
  #response;
  #settle;
  #status;
  #type;
  #chunks;

  constructor(response, settle) {
    this.#response = response;
    this.#settle = settle;
  }

  onRequestStart(controller) {
    this.#response.on('close', () => {
      if (!this.#response.writableFinished) controller.abort(new Error('the caller has left'));
    });
  }

  onResponseStart(controller, status, headers) {
    this.#status = status;
    this.#type = headers['content-type'];
    if (!this.#type?.startsWith('text/event-stream')) {
      this.#chunks = [];
      return;
    }
    this.#response.writeHead(status, { 'content-type': this.#type });
    this.#response.on('drain', () => controller.resume());
  }

  onResponseData(controller, chunk) {
    if (this.#chunks !== undefined) this.#chunks.push(chunk);
    else if (!this.#response.write(chunk)) controller.pause();
  }

  onResponseEnd() {
    if (this.#chunks === undefined) {
      this.#response.end();
      this.#close(undefined);
      return;
    }
    const text = join(this.#chunks);
    const { usage } = JSON.parse(text);
    this.#response.writeHead(this.#status, { 'content-type': this.#type, 'content-length': text.length });
    this.#response.end(text);
    this.#close(usage);
  }

  onResponseError(_controller, error) {
    fail(this.#response, error);
    this.#close(undefined);
  }

  #close(usage) {
    this.#settle?.(usage).catch((error) => console.error(error));
  }
}
