import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'chai';
import { ask, askIn, PATH, PROTOCOLS, type TestProtocol } from '../support/calls';
import { afterTexts, answerOf, DIALECT, streamOf } from '../support/dialects';
import { MODEL, PRICE } from '../support/gateway';
import { LeavingClient } from '../support/leaving-client';
import { setPolicy } from '../support/policy-settings';
import { showBill } from '../support/show-figures';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import {
  beforeBody,
  after as later,
  messagesAnswer,
  messagesAsAsked,
  messagesFailure,
  messagesStream,
  neverAnswer,
  type Script,
  when,
} from '../support/upstream';

/** The usage that the vendor charges. Its output is mostly hidden reasoning. */
const USAGE = { input: 1_000, output: 20_000 };
/** The cost of that usage: 1,000 × 3 + 20,000 × 15 USD per million. */
const COST = '0.30300000';

/** How long the upstream waits after the client disconnected, so that the gateway notices first. */
const LATER_MS = 500;

const WORDS = Array.from({ length: 2_000 }, () => 'word ');

/** Returns a script that sends words for longer than the gateway reads a stream that its client left. */
const talkOf = (protocol: TestProtocol) => streamOf(protocol, { texts: WORDS, usage: USAGE, delayMs: 20 });

/** The speed that the gateway assumes for a model whose streams it never measured. */
const TOKENS_PER_SECOND = 50;

describe('A client that disconnects after the upstream took the request', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  /** The upstream of the streams that the gateway reads for a long time. */
  const lasting = useUpstream();
  let key: string;

  const gateway = useGateway(() => {
    const timeouts = { connect: '1s', headers: '20s', idle: '20s' };
    const models = { [MODEL]: { maxOutput: 128_000 } };
    return {
      upstreams: {
        acme: { url: upstream.url, timeouts, models },
        lasting: { url: lasting.url, timeouts, models: { lasting: { maxOutput: 128_000 } } },
        stubborn: { url: lasting.url, timeouts, models: { stubborn: { maxOutput: 128_000 } }, stopsOnCancel: false },
        // No other test may measure the speed of this model.
        talkative: { url: lasting.url, timeouts, models: { talkative: { maxOutput: 128_000 } }, stopsOnCancel: true },
        quiet: { url: lasting.url, timeouts, models: { quiet: { maxOutput: 128_000 } } },
        narrow: { url: upstream.url, timeouts, models: { narrow: {} }, maxConcurrent: 1 },
      },
      // Calls that are read for long need their leases renewed.
      system: { ledger: { leaseSeconds: 5 } },
      configure: (config) => setPolicy(config, 'reserve-settle', { onClientAbort: 'drain' }, 'cost'),
    };
  });

  before(async () => {
    // These clients disconnect first and are asserted last. The other tests run meanwhile.
    await leaveLasting();
  });
  beforeEach(async () => {
    upstream.reset();
    ({ key } = await gateway.newCustomer('100'));
  });

  const begin = (protocol: TestProtocol, more: Record<string, unknown>, prefix = '', by = key) =>
    new LeavingClient(gateway, `${prefix}${PATH[protocol]}`, by, askIn(protocol, { max_tokens: 50_000, ...more }));

  const onlyRecord = (paidBy = key): Promise<Record<string, unknown>> =>
    until(
      'the record is there',
      async () => {
        const { items } = (await gateway.call('/v1/usage', { method: 'GET', key: paidBy })).json;
        return items[0];
      },
      40_000,
    );

  async function expectBooks(record: Record<string, unknown>): Promise<void> {
    const balance = await gateway.balance(key);
    expect(balance.heldUsd).to.equal('0.00000000');
    expect(Number(balance.balanceUsd)).to.be.closeTo(100 - Number(record['cost']), 1e-9);
  }

  for (const protocol of PROTOCOLS) {
    it(`pays the reported usage of a stream if it disconnects before the usage arrives (${protocol})`, async () => {
      const before = afterTexts(protocol, 1);
      upstream.always(
        streamOf(protocol, { texts: ['one '], usage: USAGE, waitFor: { before, until: sleep(LATER_MS) } }),
      );
      const client = begin(protocol, { stream: true });
      await client.sees('one ');
      client.leave();
      const record = await onlyRecord();
      expect(record).to.include({ billing: 'actual', cost: COST, outputTokens: 20_000, status: 200, errorCode: null });
      await expectBooks(record);
    });

    it(`pays the reported usage of a stream if it disconnects before the upstream answers (${protocol})`, async () => {
      upstream.always(later(LATER_MS, streamOf(protocol, { texts: ['one '], usage: USAGE })));
      const client = begin(protocol, { stream: true });
      await upstream.call(1);
      client.leave();
      const record = await onlyRecord();
      expect(record).to.include({ billing: 'actual', cost: COST, status: 499, errorCode: 'CLIENT_LEFT' });
      await expectBooks(record);
    });

    it(`pays the reported usage of an unstreamed call (${protocol})`, async () => {
      upstream.always(later(LATER_MS, answerOf[protocol]({ usage: USAGE })));
      const client = begin(protocol, {});
      await upstream.call(1);
      client.leave();
      const record = await onlyRecord();
      expect(record).to.include({ billing: 'actual', cost: COST, status: 499, errorCode: 'CLIENT_LEFT' });
      await expectBooks(record);
    });
  }

  it('keeps its slot at the upstream occupied until the answer has ended', async () => {
    upstream.next(later(1_200, messagesAnswer({ usage: USAGE })));
    upstream.always(messagesAnswer());
    const client = begin('messages', { model: 'narrow', max_tokens: 100 });
    await upstream.call(1);
    client.leave();
    const next = gateway.call(PATH.messages, {
      key: (await gateway.newCustomer('1')).key,
      body: ask({ model: 'narrow' }),
    });
    await sleep(600);
    expect(upstream.calls).to.have.length(1);
    expect((await next).status).to.equal(200);
    expect(upstream.calls).to.have.length(2);
  });

  it('pays nothing if the upstream then fails, and no other upstream is called', async () => {
    upstream.always(later(500, messagesFailure(500)));
    const client = begin('messages', {});
    await upstream.call(1);
    client.leave();
    expect(await onlyRecord()).to.include({ billing: 'released', cost: '0.00000000', status: 499 });
    expect(upstream.calls).to.have.length(1);
  });

  it('pays nothing if the upstream did not take the whole request', async () => {
    upstream.always(
      beforeBody({
        answer: async ({ request, closed }) => {
          request.pause();
          await new Promise<void>((done) => closed.addEventListener('abort', () => done()));
        },
      }),
    );
    const client = begin('messages', { messages: [{ role: 'user', content: 'x'.repeat(15_000_000) }] });
    await upstream.call(1);
    await sleep(500);
    client.leave();
    expect(await onlyRecord()).to.include({ billing: 'released', cost: '0.00000000', status: 499 });
  });

  it('gets 429 for more unstreamed calls while the gateway still reads eight answers for its account, but can stream', async () => {
    let answer = (): void => undefined;
    const ready = new Promise<void>((resolve) => {
      answer = resolve;
    });
    upstream.next(...Array.from({ length: 8 }, () => when(ready, messagesAnswer({ usage: USAGE }))));
    upstream.always(messagesAnswer());
    const clients = Array.from({ length: 8 }, () => begin('messages', {}));
    await upstream.call(8);
    for (const client of clients) client.leave();
    const refused = await until('a further call is refused', async () => {
      const further = await gateway.call(PATH.messages, { key, body: ask() });
      return further.status === 429 ? further : undefined;
    });
    expect(refused.json.error).to.include({ code: 'CONCURRENCY_LIMIT' });
    expect(refused.json.error.details).to.deep.equal({ of: 'account', limit: 8 });
    upstream.always(messagesAsAsked());
    expect((await gateway.call(PATH.messages, { key, body: ask({ stream: true }) })).status).to.equal(200);
    answer();
    await until('further calls are answered', async () => {
      const further = await gateway.call(PATH.messages, { key, body: ask() });
      return further.status === 200;
    });
    const items = await until('all have records', async () => {
      const page = (await gateway.call('/v1/usage?limit=100&status=499', { method: 'GET', key })).json.items;
      return page.length === 8 ? page : undefined;
    });
    for (const item of items) expect(item).to.include({ billing: 'actual', cost: COST });
  });

  interface LeftCall {
    readonly record: Record<string, unknown>;
    readonly closedEarly: boolean;
    readonly afterMs: number;
    /** How long the call lasted, from the request on. */
    readonly lastedMs: number;
    readonly heldUsd: number;
    readonly bytesSent: number;
  }
  const left = new Map<string, Promise<LeftCall>>();

  /** Begins a stream and disconnects when the client has seen these words, or when the upstream has the request. */
  async function leave(
    name: string,
    script: Script,
    protocol: TestProtocol,
    model: string,
    sees?: string,
    prefix = '',
  ) {
    const { key: by } = await gateway.newCustomer('100');
    lasting.next(script);
    const askedMs = performance.now();
    const client = begin(protocol, { stream: true, model }, prefix, by);
    const call = await lasting.call(left.size + 1);
    const heldUsd = Number((await gateway.balance(by)).heldUsd);
    if (sees !== undefined) await client.sees(sees);
    const leftMs = performance.now();
    client.leave();
    const end = async (): Promise<LeftCall> => {
      await Promise.race([call.clientGone, call.ended]);
      const [afterMs, lastedMs] = [performance.now() - leftMs, performance.now() - askedMs];
      const record = await onlyRecord(by);
      return { record, afterMs, lastedMs, heldUsd, bytesSent: call.bytesSent, closedEarly: call.closedEarly };
    };
    left.set(name, end());
  }

  async function leaveLasting(): Promise<void> {
    for (const protocol of PROTOCOLS) {
      await leave(`on and on ${protocol}`, talkOf(protocol), protocol, 'talkative', 'word');
      for (const [model, prefix] of [
        ['stubborn', ''],
        ['lasting', '/cost'],
      ] as const) {
        const waitFor = { before: afterTexts(protocol, 1), until: sleep(12_000) };
        const slow = streamOf(protocol, { texts: ['one '], usage: USAGE, waitFor });
        await leave(`${model} ${protocol}`, slow, protocol, model, 'one ', prefix);
      }
    }
    await leave('silent', neverAnswer(), 'messages', 'quiet');
    const waitFor = { before: 4, until: sleep(60_000, undefined, { ref: false }) };
    const hidden = messagesStream({ texts: ['one ', 'two '], usage: { input: 1_000, output: 1 }, waitFor });
    await leave('hidden', hidden, 'messages', 'quiet', 'one ');
  }

  describe('from a call that lasts long', () => {
    const callOf = (name: string) => left.get(name) as Promise<LeftCall>;

    /** Returns the tokens of the words that the upstream has sent. Head and preamble count as words. */
    const tokensSent = ({ bytesSent }: LeftCall, protocol: TestProtocol) => {
      const word = talkOf(protocol).events[DIALECT[protocol].preamble] ?? '';
      return ((bytesSent / Buffer.byteLength(word)) * 'word '.length) / 4;
    };

    function showEsc(how: string, { record, heldUsd }: LeftCall, vendorTokens: number): void {
      const vendorUsd = (USAGE.input * PRICE.input + vendorTokens * PRICE.output) / 1e6;
      const chargedUsd = Number(record['cost']);
      showBill(`Esc in the middle of a turn, ${how}`, { vendorUsd, holdUsd: heldUsd, chargedUsd });
      expect(vendorUsd).to.be.at.most(heldUsd);
      expect(chargedUsd).to.be.at.most(heldUsd);
    }

    for (const protocol of PROTOCOLS) {
      it(`pays for 10 s of a stream that continues, and then the gateway cancels the upstream (${protocol})`, async () => {
        const told = await callOf(`on and on ${protocol}`);
        const { record, afterMs, lastedMs, closedEarly } = told;
        expect(closedEarly).to.equal(true);
        expect(afterMs).to.be.within(9_000, 13_000);
        expect(record).to.include({ billing: 'partial', status: 200, errorCode: null });
        // The gateway has read at least half of what was sent.
        const sentTokens = tokensSent(told, protocol);
        const inTime = (TOKENS_PER_SECOND * lastedMs) / 1_000;
        expect(record['outputTokens']).to.be.within(sentTokens / 2, 1.2 * Math.max(sentTokens, inTime));
        showEsc(`an upstream that stops when it is cancelled (${protocol})`, told, sentTokens);
      });

      for (const [title, model] of [
        ['an upstream that does not stop when it is cancelled', 'stubborn'],
        ['a pipeline with onClientAbort: drain', 'lasting'],
      ] as const)
        it(`pays the reported usage of a stream of 12 s from ${title} (${protocol})`, async () => {
          const told = await callOf(`${model} ${protocol}`);
          expect(told.record).to.include({ billing: 'actual', cost: COST, status: 200 });
          expect(told.closedEarly).to.equal(false);
          showEsc(`${title} (${protocol})`, told, USAGE.output);
        });
    }

    it('pays for the time since the request was sent, if the upstream of a stream sends nothing and is cancelled after 10 s', async () => {
      const { record, afterMs } = await callOf('silent');
      expect(afterMs).to.be.within(9_000, 13_000);
      expect(record).to.include({ billing: 'partial', status: 499, errorCode: 'CLIENT_LEFT' });
      expect(record['outputTokens']).to.be.within(480, 700);
    });

    it('pays for hidden output, estimated by the time since the head of the answer', async () => {
      const { record } = await callOf('hidden');
      expect(record).to.include({ billing: 'partial', inputTokens: 1_000 });
      // The estimate is 10 s at 50 tokens per second, because no stream of this model was measured.
      expect(record['outputTokens']).to.be.within(480, 700);
    });
  });
});
