/** Measures the compiled parts of a call that count tokens, each by itself, at each message of the parent. */
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { endWithParent } from './announce.mjs';

const require = createRequire(join(process.env.DIST_FOLDER, 'bench.js'));
const { JsonScanner } = require('./core/http/json-scanner');
const { TextWeigher } = require('./core/http/text-weigher');
const { chargeOf, plainPrice } = require('./core/catalog/price');
const { outputTokens, totalInputTokens } = require('./core/catalog/usage');
const { TokenMeter } = require('./policies/token-metering/token-meter');
const { default: chat } = require('./plugins/upstreams/chat');

const TIMES = 20_000;
const TRIES = 15;

const body = Buffer.from(process.env.CALL_BODY);
const answer = JSON.parse(process.env.CALL_ANSWER);
const candidate = { model: { name: answer.model, context: 200_000 } };
const price = plainPrice({ input: 100_000_000n, output: 500_000_000n });
const nobody = { open() {}, close() {}, key() {}, scalar() {} };

function scan(weigher) {
  const scanner = new JsonScanner(nobody, weigher);
  scanner.feed(body);
  scanner.finish();
  return weigher?.tokens;
}

/** Runs the meters from the parsed answer to the charge, the headers and the record. */
function count() {
  const { usage, contentBytes } = chat.readBody(answer);
  const meter = new TokenMeter({ inputTokensEstimate: 100 });
  meter.begin(candidate);
  meter.noteBody(usage, contentBytes);
  const counted = meter.read();
  const { costE8 } = chargeOf([{ usage: counted.usage, priceOf: () => price }]);
  return [costE8, totalInputTokens(counted.usage), outputTokens(counted.usage)];
}

/** Returns the time of the fastest of many tries, because other work on the machine only makes a try slower. */
function microsOf(work) {
  let least = Number.POSITIVE_INFINITY;
  for (let each = 0; each < TRIES; each += 1) {
    const from = process.hrtime.bigint();
    for (let at = 0; at < TIMES; at += 1) work();
    least = Math.min(least, Number(process.hrtime.bigint() - from) / TIMES / 1_000);
  }
  return least;
}

process.on('message', () => {
  const weights = microsOf(() => scan(new TextWeigher())) - microsOf(() => scan(undefined));
  process.send({ parts: { weights, meters: microsOf(count) } });
});
process.send({ ready: true });
endWithParent();
