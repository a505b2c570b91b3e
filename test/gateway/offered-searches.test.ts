import { expect } from 'chai';
import { askIn, PATH } from '../support/calls';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import {
  messagesAnswer,
  messagesStream,
  responsesAnswer,
  responsesStream,
  type Script,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

/** The model's context window, which costs 0.04 USD. A search costs 0.01 USD. */
const CONTEXT = 10_000;
const PRICE = { input: 4, output: 10, pieces: { webSearch: 0.01 } };
const WINDOW = 0.04;
const SEARCH = 0.01;
/** The most that body and answer can cost. */
const REST = 0.02;
const TWO_WINDOWS = 2 * WINDOW + SEARCH;

const OFFER = { responses: { type: 'web_search' }, messages: { type: 'web_search_20250305', name: 'web_search' } };
type Searching = keyof typeof OFFER;

interface Asked {
  readonly stream?: boolean;
  readonly max_tool_calls?: number;
  readonly tools: readonly { readonly max_uses?: number }[];
}

/** Searches as often as the model wants and the body allows, and reads the context window after each search. */
function vendorThatSearches(wanted: number): Script {
  return {
    answer: (exchange) => {
      const { stream, max_tool_calls, tools } = exchange.call.json as Asked;
      const searches = Math.min(wanted, max_tool_calls ?? tools[0]?.max_uses ?? 50);
      const input = 100 + searches * CONTEXT;
      const counts = { input_tokens: input, output_tokens: 100 };
      if (exchange.call.path.includes('messages')) {
        const rawUsage = { ...counts, server_tool_use: { web_search_requests: searches } };
        return (stream === true ? messagesStream({ rawUsage }) : messagesAnswer({ rawUsage })).answer(exchange);
      }
      const said = { searches, rawUsage: { ...counts, total_tokens: input + 100 } };
      return (stream === true ? responsesStream(said) : responsesAnswer(said)).answer(exchange);
    },
  };
}

const costOf = (searches: number) => ((100 + searches * CONTEXT) * 4) / 1e6 + 0.001 + searches * SEARCH;

describe('A call that offers web searches without a limit', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    const model = { context: CONTEXT, maxOutput: 1_000, estimatedMaxTokens: 100, tokenizerFactor: 1, price: PRICE };
    gateway = await startGateway({
      upstreams: {
        acme: { url: upstream.url, models: { [MODEL]: model, never: { ...model, toolUses: { webSearch: 0 } } } },
      },
    });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  const ask = async (usd: number, protocol: Searching, more: object = {}) => {
    const { key, accountId } = await gateway.newCustomer(usd.toFixed(8));
    const body = askIn(protocol, { max_tokens: 200, tools: [OFFER[protocol]], ...more });
    const answered = await gateway.call(PATH[protocol], { key, body });
    return { key, accountId, ...answered };
  };
  const sent = async () => (await upstream.call(1)).json as Asked;
  const limitSent = async (): Promise<number | undefined> => {
    const { max_tool_calls, tools } = await sent();
    return max_tool_calls ?? tools[0]?.max_uses;
  };

  for (const protocol of ['responses', 'messages'] as const)
    for (const stream of [true, false])
      for (const [wanted, made] of [
        [0, 0],
        [1, 1],
        [5, 1],
      ] as const)
        it(`makes ${made} of ${wanted} searches (${protocol}${stream ? ', streamed' : ''})`, async () => {
          upstream.always(vendorThatSearches(wanted));
          const usd = TWO_WINDOWS + REST;
          const { status, text, key, accountId } = await ask(usd, protocol, { stream });
          expect(status, text).to.equal(200);
          expect(await limitSent()).to.equal(1);
          const { balanceUsd, heldUsd } = await gateway.balance(key);
          expect([Number(balanceUsd), heldUsd]).to.deep.equal([Number((usd - costOf(made)).toFixed(8)), '0.00000000']);
          const account = await gateway.admin('GET', `/admin/v1/accounts/${accountId}`);
          expect(account.json.excessUsd).to.equal('0.00000000');
        });

  it('gets 402 with the required amount if the money does not suffice for one search', async () => {
    const { status, json } = await ask(WINDOW, 'responses');
    expect([status, json.error.code]).to.deep.equal([402, 'INSUFFICIENT_BALANCE']);
    expect(Number(json.error.details.requiredUsd)).to.be.within(WINDOW + SEARCH, TWO_WINDOWS + REST);
    expect(upstream.calls).to.have.length(0);
  });

  it('keeps its own limit of searches or a smaller one of the model, if there is one', async () => {
    upstream.always(vendorThatSearches(5));
    expect((await ask(TWO_WINDOWS + REST, 'responses', { max_tool_calls: 5 })).status).to.equal(402);
    expect((await ask(REST, 'responses', { model: 'never' })).status).to.equal(200);
    expect(await limitSent()).to.equal(0);
  });
});
