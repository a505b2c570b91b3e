import { connect } from 'node:net';
import { expect } from 'chai';
import { ask, askIn, PATH, PROTOCOLS } from '../support/calls';
import { answerOf, failureOf } from '../support/dialects';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { after as afterMs, messagesAnswer, messagesStream } from '../support/upstream';

const USAGE = { input: 1_000, output: 200 };
const COST = '0.00600000';

describe('With stored answers and an Idempotency-Key,', () => {
  const upstream = useUpstream();

  const gateway = useGateway(() => ({
    upstreams: { acme: { url: upstream.url } },
    system: { answerStore: { maxBytes: 16_777_216 } },
  }));
  beforeEach(() => upstream.reset());

  const spent = async (key: string) => (await gateway.balance(key)).key['spentUsd'];
  const call = (
    key: string,
    path: string,
    body: object = askIn(PROTOCOLS.find((each) => PATH[each] === path) ?? 'messages'),
  ) => gateway.call(path, { key, headers: { 'idempotency-key': 'order-1' }, body });

  for (const protocol of PROTOCOLS) {
    const path = PATH[protocol];
    describe(protocol, () => {
      it('a repetition of a charged call gets the first answer, costs nothing and has its own usage record', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.next(answerOf[protocol]({ text: 'only once', usage: USAGE }));
        const first = await call(key, path);
        const second = await call(key, path);
        expect(second.status, second.text).to.equal(200);
        expect(second.text).to.equal(first.text);
        const same = ['content-type', 'x-ai-cost', 'x-ai-tokens-input', 'x-ai-tokens-output', 'x-ai-tokens-total'];
        for (const name of [...same, 'x-routing-provider', 'x-svc-source'])
          expect(second.headers[name], name).to.equal(first.headers[name]);
        const id = second.headers['x-svc-request-id'] ?? '';
        expect(second.headers['x-svc-repeats']).to.equal(first.headers['x-svc-request-id']);
        expect(id).not.to.equal(first.headers['x-svc-request-id']);
        expect(await gateway.record(key, id)).to.include({ status: 200, cost: '0.00000000', billing: 'released' });
        expect(await spent(key)).to.equal(COST);
        expect(upstream.calls).to.have.length(1);
      });

      it('repetitions while the first call runs wait for its answer', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.next(afterMs(300, answerOf[protocol]({ text: 'only once', usage: USAGE })));
        const answers = await Promise.all(Array.from({ length: 10 }, () => call(key, path)));
        expect(answers.map(({ status }) => status)).to.deep.equal(Array(10).fill(200));
        expect(new Set(answers.map(({ text }) => text)).size).to.equal(1);
        expect(await spent(key)).to.equal(COST);
        expect(upstream.calls).to.have.length(1);
      });

      it('one of the waiting repetitions runs as a new call if the first call ended without a charge', async () => {
        const { key } = await gateway.newCustomer('10');
        upstream.next(afterMs(300, failureOf[protocol](422, { message: 'not like this' })));
        upstream.always(afterMs(100, answerOf[protocol]({ usage: USAGE })));
        const first = call(key, path);
        await upstream.call(1);
        const waiting = await Promise.all(Array.from({ length: 5 }, () => call(key, path)));
        expect((await first).status).to.equal(422);
        expect(waiting.map(({ status }) => status)).to.deep.equal(Array(5).fill(200));
        expect(await spent(key)).to.equal(COST);
        expect(upstream.calls).to.have.length(2);
      });
    });
  }

  it('a stream is not stored, and a repetition of it gets 409 instead of waiting', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesStream({ texts: ['one ', 'two '], usage: USAGE, delayMs: 200 }));
    const body = ask({ stream: true });
    const first = call(key, PATH.messages, body);
    await upstream.call(1);
    const during = await call(key, PATH.messages, body);
    expect(during.json.error.code).to.equal('IDEMPOTENCY_KEY_IN_USE');
    expect((await first).status).to.equal(200);
    const later = await call(key, PATH.messages, body);
    expect(later.json.error.code).to.equal('ALREADY_CHARGED');
    expect(await spent(key)).to.equal(COST);
  });

  it('an answer that is larger than the store is not kept, and its repetition gets 409', async () => {
    const { key } = await gateway.newCustomer('10');
    upstream.always(messagesAnswer({ text: 'x'.repeat(16_777_216), usage: USAGE }));
    expect((await call(key, PATH.messages)).status).to.equal(200);
    expect((await call(key, PATH.messages)).json.error.code).to.equal('ALREADY_CHARGED');
  });

  it('a repetition gets the answer although the first client has lost its connection and reads nothing', async () => {
    const { key } = await gateway.newCustomer('10');
    const text = 'x'.repeat(12_000_000);
    upstream.always(messagesAnswer({ text, usage: USAGE }));
    const { hostname, port } = new URL(gateway.url);
    const lost = connect({ host: hostname, port: Number(port) });
    lost.pause();
    const body = JSON.stringify(ask());
    const head = [
      'POST /v1/messages HTTP/1.1',
      `host: ${hostname}`,
      `x-api-key: ${key}`,
      'content-type: application/json',
      'idempotency-key: order-1',
      `content-length: ${body.length}`,
    ];
    lost.write(`${head.join('\r\n')}\r\n\r\n${body}`);
    await until('the first call is charged', async () => (await spent(key)) === COST);
    const repeated = await call(key, PATH.messages);
    lost.destroy();
    expect(repeated.status, repeated.text.slice(0, 300)).to.equal(200);
    expect(repeated.text).to.include(text);
    expect(upstream.calls).to.have.length(1);
  });

  it('an account cannot evict the stored answers of another account', async () => {
    const { key } = await gateway.newCustomer('10');
    const { key: stranger } = await gateway.newCustomer('10');
    upstream.next(messagesAnswer({ text: 'of the first account', usage: USAGE }));
    const first = await call(key, PATH.messages);
    upstream.always(messagesAnswer({ text: 'x'.repeat(4_194_304), usage: USAGE }));
    for (let count = 0; count < 6; count += 1) {
      const headers = { 'idempotency-key': `flood-${count}` };
      expect((await gateway.call(PATH.messages, { key: stranger, headers, body: ask() })).status).to.equal(200);
    }
    const repeated = await call(key, PATH.messages);
    expect(repeated.text, repeated.text.slice(0, 300)).to.equal(first.text);
    expect(await spent(key)).to.equal(COST);
  });

  it('a revoked key and another account get no stored answer', async () => {
    const { key, keyId } = await gateway.newCustomer('10');
    const { key: stranger } = await gateway.newCustomer('0');
    upstream.always(messagesAnswer({ text: 'of the first account', usage: USAGE }));
    expect((await call(key, PATH.messages)).status).to.equal(200);
    expect((await call(stranger, PATH.messages)).status).to.equal(402);
    expect((await gateway.admin('DELETE', `/admin/v1/keys/${keyId}`)).status).to.equal(200);
    const revoked = await call(key, PATH.messages);
    expect(revoked.status, revoked.text).to.equal(401);
  });
});
