import { expect } from 'chai';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { CAPTURED_HEADERS, CAPTURED_PATH, capturedRequest } from '../support/captured-request';
import { startGateway, type TestGateway } from '../support/gateway';
import { showBill, showFigures } from '../support/show-figures';
import { until } from '../support/until';
import { messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

const MODEL = 'captured';
/** USD per million tokens. */
const PRICE = { input: 2, output: 10, cacheRead: 0.2, cacheWrite: 2.5 };
const TOKENS_PER_SECOND = 200;
const USD_A_SECOND = (TOKENS_PER_SECOND * PRICE.output) / 1e6;
/** How much output the hold at admission covers. */
const AHEAD_USD = 5 * USD_A_SECOND;
/** Money beyond the hold at admission. It lasts for 8 s of growth, not for 10 s. */
const SHORTLY_USD = 9 * USD_A_SECOND;

const BODY = capturedRequest(MODEL);
/** The tokens of the prompt, all of which the vendor writes into its cache. */
const INPUT_TOKENS = countTokens(JSON.stringify(BODY));
const WHOLE_ANSWER_USD = (128_000 * PRICE.output) / 1e6;

/** Sends a word, then reasons without showing it until the gateway disconnects. */
const REASONS = messagesStream({
  texts: ['First, '],
  usage: { input: 0, output: 1, cacheWrite: INPUT_TOKENS },
  delayMs: 500,
  edit: (events) => [...events.slice(0, 4), ...Array.from({ length: 2_000 }, () => events[1] ?? '')],
});

describe('A request captured from Claude Code', function () {
  this.timeout(600_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    const model = { maxOutput: 128_000, tokenizerFactor: 1, price: PRICE, maxTokensPerSecond: TOKENS_PER_SECOND };
    gateway = await startGateway({
      upstreams: { vendor: { url: upstream.url, stopsOnCancel: true, models: { [MODEL]: model } } },
    });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });

  const ask = (key: string) => gateway.call(CAPTURED_PATH, { key, headers: CAPTURED_HEADERS, body: BODY });
  const heldBy = async (key: string) => Number((await gateway.balance(key)).heldUsd);

  it('is admitted with little money; its hold grows, and its stream ends with the error event once the money is used up', async () => {
    upstream.always(REASONS);
    const broke = await gateway.newCustomer('0');
    const refused = await ask(broke.key);
    const admissionUsd = Number(refused.json.error.details.requiredUsd);
    const funds = process.env['CAPTURED_USD'] ?? (admissionUsd + SHORTLY_USD).toFixed(8);
    expect(Number(funds)).to.be.within(admissionUsd, WHOLE_ANSWER_USD / 2);

    const { key } = await gateway.newCustomer(funds);
    const answering = ask(key);
    const call = await upstream.call(1);
    const gone = call.clientGone.then(() => Date.now());
    expect(await heldBy(key)).to.be.closeTo(admissionUsd, 1e-9);
    let heldUsd = admissionUsd;
    const looking = until(
      'the stream ends',
      async () => {
        const held = await heldBy(key);
        heldUsd = Math.max(heldUsd, held);
        return call.closedEarly;
      },
      500_000,
    );
    const [answered, goneAt] = await Promise.all([answering, gone, looking]);

    const seconds = (goneAt - call.at) / 1_000;
    const record = await gateway.record(key, String(answered.headers['request-id']));
    const chargedUsd = Number(record['cost']);
    const inputUsd = (INPUT_TOKENS * PRICE.cacheWrite) / 1e6;
    const outputUsd = seconds * USD_A_SECOND;
    const vendorUsd = inputUsd + outputUsd;
    showFigures('the captured request', { seconds, admissionUsd });
    showBill('the captured request', { vendorUsd, holdUsd: heldUsd, chargedUsd });
    expect(answered.status).to.equal(200);
    expect(answered.text)
      .to.match(/event: error\n.*INSUFFICIENT_BALANCE/)
      .and.not.contain('message_stop');
    expect(record).to.include({ billing: 'partial', errorCode: 'INSUFFICIENT_BALANCE' });
    expect(heldUsd).to.be.within(admissionUsd + 4 * USD_A_SECOND, Number(funds));
    expect(chargedUsd).to.be.within(inputUsd, heldUsd);
    // Compare input and output separately, because a surplus of the input's bound must not hide a hold that grows too late.
    expect(inputUsd).to.be.at.most(admissionUsd - AHEAD_USD);
    expect(outputUsd).to.be.at.most(heldUsd - admissionUsd + AHEAD_USD);
    const { balanceUsd, heldUsd: left } = await gateway.balance(key);
    expect(left).to.equal('0.00000000');
    expect(Number(balanceUsd)).to.be.closeTo(Number(funds) - chargedUsd, 1e-9);
  });
});
