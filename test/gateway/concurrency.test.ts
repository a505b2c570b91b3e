import { expect } from 'chai';
import { ask } from '../support/calls';
import type { Answered, Configured } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer, type Script } from '../support/upstream';

/** Uses an upstream that serves one call at a time and answers when the test releases it. */
describe('Calls at the same time', () => {
  const upstream = useUpstream();
  let release: (() => void)[];

  /** Answers when the test releases it. */
  const whenReleased: Script = {
    answer: async (exchange) => {
      await new Promise<void>((go) => release.push(go));
      await messagesAnswer().answer(exchange);
    },
  };

  const gateway = useGateway(() => ({
    upstreams: {
      narrow: { url: upstream.url, maxConcurrent: 1, models: { narrow: {} } },
      wide: { url: upstream.url, models: { wide: {} } },
    },
    configure: (config) => setConcurrency(config, 2),
  }));
  after(async () => {
    for (const go of release) go();
  });
  beforeEach(() => {
    upstream.reset();
    upstream.always(whenReleased);
    release = [];
  });

  const call = (key: string, model: string) => gateway.call('/v1/messages', { key, body: ask({ model }) });
  const secondKey = async (accountId: string): Promise<string> =>
    (await gateway.admin('POST', `/admin/v1/accounts/${accountId}/keys`, { name: 'second' })).json.key;
  const releaseNext = async () => (await until('a call is open', () => release.shift()))();
  const releaseAll = async (answers: Promise<Answered>[]) => {
    let open = answers.length;
    for (const answer of answers) void answer.finally(() => (open -= 1));
    await until('all are answered', () => {
      for (const go of release.splice(0)) go();
      return open === 0;
    });
    return Promise.all(answers);
  };

  it("above a key's limit of concurrent calls are refused without a hold until one ends, as are its other requests", async () => {
    const { key, accountId } = await gateway.newCustomer('10');
    const other = await secondKey(accountId);
    const open = [call(key, 'wide'), call(key, 'wide')];
    await upstream.call(2);
    const { heldUsd } = await gateway.balance(other);
    const refused = await call(key, 'wide');
    expect(refused.status).to.equal(429);
    expect(refused.json.error).to.deep.include({
      type: 'rate_limit_error',
      code: 'CONCURRENCY_LIMIT',
      retryable: true,
    });
    expect(refused.json.error.details).to.deep.equal({ of: 'key', limit: 2 });
    expect(refused.headers['retry-after']).to.equal('1');
    expect((await gateway.balance(other)).heldUsd)
      .to.equal(heldUsd)
      .and.not.equal('0.00000000');
    for (const path of ['/v1/balance', '/v1/usage', '/v1/models', '/v1/responses/resp_1', '/v1/sandboxes']) {
      const { status, json, headers } = await gateway.call(path, { method: 'GET', key });
      expect([path, status, json.error?.code, headers['retry-after']]).to.deep.equal([
        path,
        429,
        'CONCURRENCY_LIMIT',
        '1',
      ]);
    }
    for (const { status } of await releaseAll(open)) expect(status).to.equal(200);
    const [again] = await releaseAll([call(key, 'wide')]);
    expect(again?.status).to.equal(200);
  });

  it("above an upstream's limit of concurrent calls wait in a queue that serves accounts in turn", async () => {
    const busy = await gateway.newCustomer('10');
    const other = await gateway.newCustomer('10');
    const [second, watching] = [await secondKey(busy.accountId), await secondKey(busy.accountId)];
    const served: string[] = [];
    const serve = async (name: string, key: string) => {
      const answer = await call(key, 'narrow');
      served.push(name);
      return answer;
    };
    const first = serve('busy 1', busy.key);
    await upstream.call(1);
    const waiting = [serve('busy', busy.key), serve('busy', second), serve('other', other.key)];
    await until('all have a hold', async () => {
      const holds = await Promise.all([watching, other.key].map((key) => gateway.balance(key)));
      const [ofBusy = 0, ofOther = 0] = holds.map(({ heldUsd }) => Number(heldUsd));
      return ofOther > 0 && ofBusy > 2.5 * ofOther;
    });
    for (let each = 0; each < 4; each += 1) await releaseNext();
    for (const { status } of await Promise.all([first, ...waiting])) expect(status).to.equal(200);
    expect(served.indexOf('other')).to.be.below(3);
    expect(upstream.calls).to.have.length(4);
  });

  it('that wait too long for a busy upstream are refused with 503 and Retry-After', async () => {
    const { key } = await gateway.newCustomer('10');
    const open = call(key, 'narrow');
    await upstream.call(1);
    const refused = await call(key, 'narrow');
    expect(refused.status).to.equal(503);
    expect(refused.json.error.code).to.equal('OVERLOADED');
    expect(Number(refused.headers['retry-after'])).to.be.at.least(1);
    expect(upstream.calls).to.have.length(1);
    await releaseAll([open]);
    expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
  });
});

function setConcurrency(config: Configured, concurrentCallsPerKey: number): void {
  setPolicy(config, 'key-auth', { concurrentCallsPerKey });
}
