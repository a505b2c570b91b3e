/**
 * Clients that call without a pause until the parent sends a message, and record the result of each call. CALLING_CLIENTS is {url, body, keys,
 * clients}. A call is `answered` with its cost after a whole 200, `refused` after another status, and `cut` if its connection ended before the whole
 * answer. A call without a connection is not counted.
 */
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { endWithParent } from './announce.mjs';

const { url, body, keys, clients } = JSON.parse(process.env.CALLING_CLIENTS);
const agent = new Agent({ keepAlive: true, maxSockets: clients });
const AFTER_A_FAULT_MS = 20;

const answered = [];
const refused = [];
let cut = 0;
let isOver = false;
let next = 0;

async function client() {
  while (!isOver) if (!(await call(keys[next++ % keys.length]))) await pause(AFTER_A_FAULT_MS);
}

async function call(key) {
  try {
    const { statusCode, headers } = await ask(key);
    const requestId = headers['x-svc-request-id'];
    if (statusCode === 200) answered.push([requestId, headers['x-ai-cost']]);
    else refused.push([requestId, statusCode]);
    return statusCode === 200;
  } catch (error) {
    if (error.code !== 'ECONNREFUSED') cut += 1;
    return false;
  }
}

/** Makes a call and resolves with the last byte of the answer. */
function ask(key) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    const request = httpRequest(url, { method: 'POST', headers, agent, timeout: 30_000 });
    request.on('timeout', () => request.destroy(new Error('no answer within 30 s')));
    request.on('error', reject);
    request.on('response', (response) => {
      response.on('error', reject);
      response.on('end', () => resolve(response));
      response.resume();
    });
    request.end(body);
  });
}

endWithParent();
const calling = Promise.all(Array.from({ length: clients }, client));
process.once('message', async () => {
  isOver = true;
  await calling;
  process.send({ called: { answered, refused, cut } });
});
