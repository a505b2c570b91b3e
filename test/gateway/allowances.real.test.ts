import { expect } from 'chai';
import { ask } from '../support/calls';
import { startGateway, type TestGateway } from '../support/gateway';
import { watchCommands } from '../support/redis-monitor';
import { until } from '../support/until';
import { messagesAnswer, startUpstream, type TestUpstream } from '../support/upstream';

/** What a call of these tests costs in USD: 10 input tokens and 5 output tokens. */
const COST = 0.000105;
const USD_E8 = 100_000_000;

describe('Money that a node holds in advance (an allowance)', function () {
  this.timeout(120_000);
  let upstream: TestUpstream;
  const running: TestGateway[] = [];

  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer());
  });
  after(() => upstream?.stop());
  afterEach(async () => {
    for (const gateway of running.splice(0)) await gateway.kill();
  });

  const start = async (options: Partial<Parameters<typeof startGateway>[0]> = {}) => {
    const gateway = await startGateway({
      stores: 'real',
      upstreams: { one: { url: upstream.url } },
      ...options,
    });
    running.push(gateway);
    return gateway;
  };
  const redisOf = ({ stores }: TestGateway): string => {
    if (!('redisUrl' in stores)) throw new Error('the stores are real');
    return stores.redisUrl;
  };
  /** Makes so many calls with several callers at once, and returns the statuses and the total cost. */
  const load = async (gateway: TestGateway, key: string, calls: number, callers = 8) => {
    const statuses: number[] = [];
    let left = calls;
    let costE8 = 0;
    const caller = async () => {
      while (left-- > 0) {
        const answer = await gateway.call('/v1/messages', { key, body: ask() });
        statuses.push(answer.status);
        costE8 += Math.round(Number(answer.headers['x-ai-cost'] ?? 0) * USD_E8);
      }
    };
    await Promise.allSettled(Array.from({ length: callers }, caller));
    return { statuses, costE8 };
  };
  /** Calls until the key has an allowance. */
  const warm = async (gateway: TestGateway, key: string) => {
    await load(gateway, key, 100);
  };
  /** Returns the violations that the ledger's verification finds. */
  const found = async (gateway: TestGateway): Promise<unknown[]> =>
    (await gateway.admin('GET', '/admin/v1/ledger/verify')).json.items;

  it('needs less than one Redis script per two calls of a busy key', async () => {
    const gateway = await start();
    const { key } = await gateway.newCustomer('1000');
    await warm(gateway, key);
    let scripts = 0;
    const watching = await watchCommands(redisOf(gateway), ({ words: [name = ''], source }) => {
      if (source !== 'lua' && name.toLowerCase() === 'evalsha') scripts += 1;
    });
    const { statuses, costE8 } = await load(gateway, key, 600);
    watching.stop();
    expect(statuses.filter((status) => status === 200)).to.have.length(600);
    expect(costE8).to.equal(Math.round(600 * COST * USD_E8));
    expect(scripts).to.be.below(300);
    expect((await gateway.balance(key)).balanceUsd).to.equal((1000 - 700 * COST).toFixed(8));
  });

  it('is disabled with `ledger.allowances: false`: each call queries Redis', async () => {
    const gateway = await start({ system: { ledger: { allowances: false } } });
    const { key } = await gateway.newCustomer('1000');
    await warm(gateway, key);
    let scripts = 0;
    const watching = await watchCommands(redisOf(gateway), ({ words: [name = ''], source }) => {
      if (source !== 'lua' && name.toLowerCase() === 'evalsha') scripts += 1;
    });
    await load(gateway, key, 200);
    await until('each call was reserved and settled by a script', () => scripts >= 400);
    watching.stop();
  });

  it('lets neither of two gateways admit a call of an API key after its revocation was acknowledged', async () => {
    const first = await start();
    const second = await start({ stores: first.stores });
    const { keyId, key } = await first.newCustomer('1000');
    await Promise.all([warm(first, key), warm(second, key)]);
    let isRevoked = false;
    let late = 0;
    let isDone = false;
    const caller = async (gateway: TestGateway) => {
      while (!isDone) {
        const wasRevoked = isRevoked;
        const { status } = await gateway.call('/v1/messages', { key, body: ask() });
        if (wasRevoked && status === 200) late += 1;
      }
    };
    const callers = [first, second].flatMap((gateway) => [caller(gateway), caller(gateway), caller(gateway)]);
    await until('both are at work', () => upstream.calls.length > 300);
    const { status } = await first.admin('DELETE', `/admin/v1/keys/${keyId}`);
    expect(status).to.be.oneOf([200, 204]);
    isRevoked = true;
    const after = await second.call('/v1/messages', { key, body: ask() });
    expect(after.status).to.equal(401);
    isDone = true;
    await Promise.all(callers);
    expect(late).to.equal(0);
  });

  it('charges each answered call once, even if the process is killed meanwhile', async () => {
    const gateway = await start();
    const { key } = await gateway.newCustomer('1000');
    await warm(gateway, key);
    const loading = load(gateway, key, 100_000);
    const begun = upstream.calls.length;
    await until('many calls were made', () => upstream.calls.length > begun + 500);
    await gateway.kill();
    const { costE8 } = await loading;
    const answeredE8 = costE8 + Math.round(100 * COST * USD_E8);
    const next = await start({ stores: gateway.stores, dataFolder: gateway.dataFolder });
    const spentE8 = async () => Math.round((1000 - Number((await next.balance(key)).balanceUsd)) * USD_E8);
    await until('what was on disk is charged', async () => (await spentE8()) >= answeredE8, 30_000);
    // Each caller may have one call that was settled and whose answer did not arrive.
    expect(await spentE8()).to.be.within(answeredE8, answeredE8 + Math.round(8 * COST * USD_E8));
    await until('what open calls held is back', async () => Number((await next.balance(key)).heldUsd) === 0, 30_000);
    await until('all is written', async () => (await found(next)).length === 0, 30_000).catch(() => undefined);
    expect(await found(next)).to.deep.equal([]);
  });
});
