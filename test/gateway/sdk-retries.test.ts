import Anthropic from '@anthropic-ai/sdk';
import { expect } from 'chai';
import OpenAI from 'openai';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { rejection } from '../support/rejection';
import { until } from '../support/until';
import {
  after as afterMs,
  chatAnswer,
  chatFailure,
  messagesAnswer,
  messagesFailure,
  startUpstream,
  type TestUpstream,
} from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };
const COST = '0.00600000';
const prompt = { model: MODEL, max_tokens: 50, messages: [{ role: 'user' as const, content: 'Hello' }] };

interface Sdk {
  readonly answer: typeof messagesAnswer;
  readonly failure: typeof messagesFailure;
  /** Sends a call with two retries, the default of the SDK. */
  ask(gateway: TestGateway, key: string): Promise<unknown>;
}

const headers = { 'Idempotency-Key': 'order-1' };
const SDKS: Readonly<Record<string, Sdk>> = {
  '@anthropic-ai/sdk': {
    answer: messagesAnswer,
    failure: messagesFailure,
    ask: ({ url }, apiKey) => new Anthropic({ baseURL: url, apiKey }).messages.create(prompt, { headers }),
  },
  openai: {
    answer: chatAnswer,
    failure: chatFailure,
    ask: ({ url }, apiKey) => new OpenAI({ baseURL: `${url}/v1`, apiKey }).chat.completions.create(prompt, { headers }),
  },
};

describe('Retries of the official SDKs with an Idempotency-Key', function () {
  this.timeout(60_000);
  let upstream: TestUpstream;
  let gateway: TestGateway;

  before(async () => {
    upstream = await startUpstream();
    gateway = await startGateway({ upstreams: { acme: { url: upstream.url } } });
  });
  after(async () => {
    await gateway?.stop();
    await upstream?.stop();
  });
  beforeEach(() => upstream.reset());

  const records = async (key: string) => {
    const { json } = await gateway.call('/v1/usage', { method: 'GET', key });
    return json.items as readonly Record<string, unknown>[];
  };
  const spent = async (key: string) => (await gateway.balance(key)).key['spentUsd'];

  for (const [name, sdk] of Object.entries(SDKS)) {
    describe(name, () => {
      it('make a new call after a failure, are charged once, and are counted in the record', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.next(sdk.failure(500), sdk.failure(500));
        upstream.always(sdk.answer({ usage: USAGE }));
        await sdk.ask(gateway, key);
        expect(await spent(key)).to.equal(COST);
        expect(upstream.calls).to.have.length(3);
        const id = await until('the record is there', async () => {
          const answered = (await records(key)).find(({ status }) => status === 200);
          return answered && String(answered['requestId']);
        });
        expect((await gateway.admin('GET', `/admin/v1/usage/${id}`)).json.routing).to.include({ clientRetry: 1 });
      });
    });
  }

  it('wait while the first call runs, and end with 409 once it was charged', async () => {
    const waiting: Promise<void>[] = [];
    for (const sdk of Object.values(SDKS)) {
      const { key } = await gateway.newCustomer('10');
      upstream.next(afterMs(1_000, sdk.answer({ usage: USAGE })));
      const first = sdk.ask(gateway, key);
      await upstream.call(waiting.length + 1);
      const isRefused = async () => {
        const begun = performance.now();
        const refused = (await rejection(sdk.ask(gateway, key))) as { status?: number; error?: { code?: string } };
        expect(refused.status).to.equal(409);
        expect(JSON.stringify(refused.error)).to.include('ALREADY_CHARGED');
        expect(performance.now() - begun).to.be.within(4_900, 9_000);
        await first;
        expect(await spent(key)).to.equal(COST);
      };
      waiting.push(isRefused());
    }
    await Promise.all(waiting);
    expect(upstream.calls).to.have.length(2);
  });
});
