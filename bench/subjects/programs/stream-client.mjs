/**
 * The clients of the stream scenario, in a separate process. STREAM_CLIENT is {mode, url, headers, body, streams, events, rampMs}. `paced` reads
 * every stream to its end and measures the delay of each event by the time in it. `idle` opens streams and keeps them after the first event.
 * `stalled` reads the first bytes of each and then stops. It reports its results and keeps open streams until the parent is gone.
 */
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { endWithParent } from './announce.mjs';

const { mode, url, headers, body, streams, events, rampMs } = JSON.parse(process.env.STREAM_CLIENT);
const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
const held = new Set();
/** Matches the send time in events of Chat, of Responses and of Messages. */
const TIME = /"(?:content|delta|text_delta","text)":"t(\d+)/;
const END = /^(?:data: \[DONE\]$|event: (?:response\.completed|message_stop)\n)/;
endWithParent();

const opened = [];
for (let index = 0; index < streams; index += 1) {
  opened.push({ paced, idle, stalled }[mode]().catch((error) => ({ failure: String(error) })));
  await pause(rampMs / streams);
}
const results = await Promise.all(opened);
const failures = results.flatMap(({ failure }) => failure ?? []);
const gather = (pick) => results.flatMap((result) => (result.failure === undefined ? pick(result) : []));
process.send({
  done: {
    failures: failures.length,
    failure: failures[0],
    first: percentiles(gather(({ lateUs }) => lateUs?.[0] ?? [])),
    event: percentiles(gather(({ lateUs }) => lateUs?.slice(1) ?? [])),
    untilFirst: percentiles(gather(({ untilFirstUs }) => untilFirstUs ?? [])),
  },
});

async function paced() {
  const started = nowUs();
  const response = await open();
  const lateUs = [];
  let untilFirstUs;
  let rest = '';
  let isWhole = false;
  for await (const chunk of response) {
    const now = nowUs();
    const parts = (rest + chunk.toString('latin1')).split('\n\n');
    rest = parts.pop();
    for (const part of parts) {
      const [, writtenUs] = TIME.exec(part) ?? [];
      if (writtenUs !== undefined) {
        untilFirstUs ??= now - started;
        lateUs.push(now - Number(writtenUs));
      } else if (END.test(part)) isWhole = true;
    }
  }
  if (!isWhole || lateUs.length !== events) throw new Error(`${lateUs.length} of ${events} events, end: ${isWhole}`);
  return { lateUs, untilFirstUs };
}

async function idle() {
  const response = await open();
  held.add(response);
  await new Promise((first, lost) => response.once('data', first).once('close', () => lost(new Error('was closed'))));
  return {};
}

async function stalled() {
  const response = await open();
  held.add(response);
  await new Promise((first) => response.once('data', first));
  response.pause();
  return {};
}

function open() {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      agent,
    });
    request.on('error', reject).on('response', (response) => {
      if (response.statusCode === 200) return resolve(response);
      response.setEncoding('utf8').once('data', (text) => reject(new Error(`${response.statusCode} ${text}`)));
    });
    request.end(body);
  });
}

function percentiles(values) {
  const sorted = Float64Array.from(values).sort();
  const at = (share) => (sorted.length === 0 ? null : sorted[Math.ceil(sorted.length * share) - 1] / 1e3);
  return { count: sorted.length, p50Ms: at(0.5), p99Ms: at(0.99) };
}

function nowUs() {
  const [seconds, nanoseconds] = process.hrtime();
  return Math.round(seconds * 1e6 + nanoseconds / 1e3);
}
