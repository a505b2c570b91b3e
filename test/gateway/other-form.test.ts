import { expect } from 'chai';
import { askIn, PATH, PROTOCOLS } from '../support/calls';
import { answerIn, DIRECTIONS, streamIn, UPSTREAM_DIALECTS } from '../support/directions';
import { useGateway, useUpstream } from '../support/story';
import { respond } from '../support/upstream';

const USAGE = { input: 120, output: 30 };
const NATIVE = PROTOCOLS.map((from) => ({ from, to: from, model: `${from}-model`, name: `${from} natively` }));

describe('An upstream that answers in another form than the call asked for', () => {
  const upstream = useUpstream();
  let key: string;
  const gateway = useGateway(() => ({
    upstreams: Object.fromEntries(
      UPSTREAM_DIALECTS.map((dialect) => [
        `only-${dialect}`,
        { url: upstream.url, adapter: dialect, models: { [`${dialect}-model`]: {} } },
      ]),
    ),
  }));
  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => upstream.reset());

  for (const { from, to, model, name } of [...NATIVE, ...DIRECTIONS])
    for (const stream of [true, false]) {
      const said = { text: 'Hello', texts: ['Hello'], usage: USAGE };
      it(`is charged, and its client gets ${stream ? 'a stream' : 'a body'} (${name})`, async () => {
        upstream.always(stream ? answerIn(to, said) : streamIn(to, said));
        const answer = await gateway.call(PATH[from], { key, body: askIn(from, { model, stream }) });
        expect(answer.status, answer.text).to.equal(200);
        expect(answer.headers['content-type']).to.include(stream ? 'text/event-stream' : 'application/json');
        expect(answer.text).to.include('Hello');
        const record = await gateway.record(key, String(answer.headers['x-svc-request-id']));
        expect(record).to.include({ billing: 'actual', inputTokens: USAGE.input, outputTokens: USAGE.output });
      });
    }

  for (const protocol of ['messages', 'chat'] as const)
    it(`fails if it sends something that is no answer (${protocol})`, async () => {
      upstream.always(respond({ body: { ok: true } }));
      const body = askIn(protocol, { model: `${protocol}-model`, stream: true });
      const answer = await gateway.call(PATH[protocol], { key, body });
      expect([answer.status, answer.json.error.code]).to.deep.equal([502, 'ALL_PROVIDERS_FAILED']);
      expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
    });
});
