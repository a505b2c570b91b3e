import { expect } from 'chai';
import { Pool } from 'undici';
import type { Egress } from '../../core/wire/egress';
import { MAX_LIST_BYTES, readList } from '../../plugins/operator/read-list';
import { listen, type TestServer } from '../support/serve';

const LIST = '{"acme-large":{"litellm_provider":"acme","input_cost_per_token":3e-06}}';

describe('a list of prices at an address', () => {
  let server: TestServer;
  let pool: Pool;
  const retired: string[] = [];
  /** Stands for the guarded egress, which would refuse the address of a server in a test. */
  const egress = { pool: () => pool, retire: (name: string) => void retired.push(name) } as unknown as Egress;
  const answers: Readonly<Record<string, readonly [status: number, body: string]>> = {
    '/list.json?v=2': [200, LIST],
    '/moved': [302, ''],
    '/large': [200, ' '.repeat(MAX_LIST_BYTES + 1)],
    '/none': [200, '<html>'],
  };
  before(async () => {
    server = await listen((request, response) => {
      const [status, body] = answers[request.url ?? ''] ?? [404, ''];
      response.writeHead(status, status === 302 ? { location: '/list.json?v=2' } : {}).end(body);
    });
    pool = new Pool(server.url);
  });
  after(async () => {
    await pool.destroy();
    await server.close();
  });

  const read = (path: string) => readList({ egress }, { url: `https://lists.example${path}` }, 'litellm');
  const codeOf = (work: Promise<unknown>): Promise<unknown> =>
    work.then(
      () => undefined,
      ({ code }) => code,
    );

  it('is read with its query, and its connections are closed', async () => {
    const { models } = await read('/list.json?v=2');
    expect(models.get('acme-large')?.[0]?.prices.get('input')).to.equal(300_000_000n);
    expect(retired).to.deep.equal(['price list https://lists.example']);
  });

  it('is not read if the address redirects, has none, or has another content', async () => {
    expect(await codeOf(read('/moved'))).to.equal('REPORT_UNAVAILABLE');
    expect(await codeOf(read('/missing'))).to.equal('REPORT_UNAVAILABLE');
    expect(await codeOf(read('/none'))).to.equal('INVALID_FIELD');
  });

  it('is not read beyond 20 MB, and neither is a text', async () => {
    expect(await codeOf(read('/large'))).to.equal('BODY_TOO_LARGE');
    const text = ' '.repeat(MAX_LIST_BYTES + 1);
    expect(await codeOf(readList({ egress }, { text }, undefined))).to.equal('BODY_TOO_LARGE');
  });
});
