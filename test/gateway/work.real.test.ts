import { join } from 'node:path';
import { expect } from 'chai';
import { Pool } from 'undici';
import { forEachConcurrent } from '../../core/base/for-each-concurrent';
import { MODEL, startGateway, type TestGateway } from '../support/gateway';
import { until } from '../support/until';
import { chatAnswer, startUpstream, type TestUpstream } from '../support/upstream';

/** More calls than the metrics of the first calls, and enough that the key has an allowance. */
const WARMING_CALLS = 1_500;
const COUNTED_CALLS = 1_000;
/** Enough for a dozen collections of the young generation. */
const SURVIVING_CALLS = 4_000;

const BODY = JSON.stringify({
  model: MODEL,
  max_tokens: 64,
  temperature: 0.2,
  messages: [{ role: 'user', content: 'Say in one sentence what a gateway of models does. '.repeat(3) }],
});

describe('the work of a call', () => {
  let upstream: TestUpstream;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    upstream = await startUpstream();
    upstream.always(chatAnswer());
    gateway = await startGateway({
      stores: 'real',
      own: true,
      env: { NODE_OPTIONS: `--require ${join(__dirname, '../support/work-probe.cjs')}` },
      upstreams: { acme: { url: upstream.url, adapter: 'chat' } },
    });
    ({ key } = await gateway.newCustomer('100'));
  });

  after(async () => {
    await gateway.stop();
    await upstream.stop();
  });

  it('stays within its limits for promises, garbage and retained memory if nothing delays a small call', async () => {
    await call(WARMING_CALLS);
    await probe('counts bytes');
    await call(COUNTED_CALLS);
    await probe('counts promises');
    await call(COUNTED_CALLS);
    await probe('counts survivors');
    await call(SURVIVING_CALLS);
    const work = JSON.parse(await probe('{')) as Record<'bytes' | 'promises' | 'survivingBytes', number>;
    // A busy machine has fewer calls in a turn, and so a few promises more for each.
    expect(work.promises / COUNTED_CALLS).to.be.below(12);
    expect(work.bytes / COUNTED_CALLS).to.be.below(72_000);
    // A Set of open calls left 15 KB of each call in the old generation.
    expect(work.survivingBytes / SURVIVING_CALLS).to.be.below(8_000);
  });

  async function call(calls: number): Promise<void> {
    const pool = new Pool(gateway.url, { connections: 16 });
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${key}` };
    await forEachConcurrent(Array.from({ length: calls }), 16, async () => {
      const answer = await pool.request({ method: 'POST', path: '/v1/chat/completions', headers, body: BODY });
      await answer.body.dump();
      expect(answer.statusCode).to.equal(200);
    });
    await pool.close();
  }

  /** Begins the probe's next phase. Returns what it says. */
  async function probe(expected: string): Promise<string> {
    const said = () =>
      gateway
        .output()
        .match(/(?<=^WORK ).+$/gm)
        ?.at(-1);
    gateway.process.kill('SIGUSR2');
    return until(`the probe ${expected}`, () => (said()?.startsWith(expected) === true ? said() : undefined));
  }
});
