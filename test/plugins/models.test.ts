import assert from 'node:assert/strict';
import { request } from 'undici';
import { buildCatalog, type ModelEntry, type Upstream } from '../../core/catalog/catalog';
import { plainPrice } from '../../core/catalog/price';
import type { PipelineSettings } from '../../core/configuration/pipelines';
import { sampleAdapter, sampleModel, sampleUpstream } from '../support/catalog-samples';
import { openDesk, type TestDesk } from '../support/desk';

const RATES = {
  input: 300_000_000n,
  output: 1_500_000_000n,
  cacheWrite: 375_000_000n,
  cacheWrite1h: 600_000_000n,
  cacheRead: 30_000_000n,
};

function entry(name: string, aliases: string[] = [], input = RATES.input): ModelEntry {
  const above = { tokens: 200_000, rates: plainPrice({ ...RATES, input: input * 2n }).rates };
  return sampleModel(name, { aliases, price: plainPrice({ ...RATES, input }, above) });
}

function upstream(name: string, models: ModelEntry[], disabled?: string): Upstream {
  return sampleUpstream(name, models, { adapters: [sampleAdapter('both', ['messages', 'chat'])], disabled });
}

function pipeline(name: string, paths: string[], settings: object = {}, host?: string): PipelineSettings {
  const policy = { name: 'routing' } as PipelineSettings['steps'][number]['policy'];
  return { name, endpoints: [{ name, host, paths, methods: ['POST'] }], steps: [{ policy, settings }] };
}

function below(...prefixes: string[]): string[] {
  return prefixes.flatMap((prefix) => [`${prefix}/v1/messages`, `${prefix}/v1/chat/completions`]);
}

describe('the list of models', () => {
  let desk: TestDesk;
  let apiKey: string;
  before(async () => {
    const catalog = buildCatalog([
      upstream('one', [entry('acme/large-4.5', ['large'])]),
      upstream('two', [entry('large-4-5', [], 400_000_000n)]),
      upstream('off', [entry('acme/absent')], 'no credential'),
    ]);
    const pipelines = [
      pipeline('quality', ['/v1/messages', ...below('/default', '/quality', '/speed')]),
      pipeline('cost', below('/cost'), { upstreams: ['two'] }),
      pipeline('direct', ['/v1/messages', '/v1/chat/completions'], {}, '*.p.localhost'),
      pipeline('chat', ['/v1/chat/completions'], { upstreams: ['one'] }),
      pipeline('partner', ['/v1/messages', '/v1/chat/completions'], { upstreams: ['two'] }, 'partner.example'),
    ];
    desk = await openDesk('Postgres', { catalog, pipelines });
    ({ apiKey } = await desk.customer());
  });
  after(() => desk.close());

  it('has the fields that both SDKs read, with prices and the number of upstreams', async () => {
    const { body } = await desk.get('/v1/models', apiKey);
    assert.equal(body.data.length, 1);
    const [model] = body.data;
    assert.deepEqual(
      { object: body.object, first_id: body.first_id, last_id: body.last_id, has_more: body.has_more },
      { object: 'list', first_id: model.id, last_id: model.id, has_more: false },
    );
    assert.equal(model.object, 'model');
    assert.equal(model.type, 'model');
    assert.equal(model.created, 0);
    assert.equal(model.created_at, '1970-01-01T00:00:00.000Z');
    assert.equal(model.upstreams, 2);
    assert.equal(model.price_per_million.input, '8.00000000');
    assert.equal(model.price_per_million.output, '15.00000000');
  });

  describe('split into pages', () => {
    let paged: TestDesk;
    let key: string;
    const ids = ['m-1', 'm-2', 'm-3', 'm-4', 'm-5'];

    before(async () => {
      const catalog = buildCatalog([
        upstream('one', [...ids.map((id) => entry(id, [`${id}-alias`]))]),
        upstream('off', [entry('gone')], 'no credential'),
      ]);
      paged = await openDesk('Postgres', { catalog, pipelines: [pipeline('quality', below(''))] });
      ({ apiKey: key } = await paged.customer());
    });
    after(() => paged.close());

    async function list(query: string) {
      const { status, body } = await paged.get(`/v1/models?${query}`, key);
      const listed = (body.data as { id: string }[] | undefined)?.map(({ id }) => id);
      return { status, body, listed, ends: [body.first_id, body.last_id, body.has_more] };
    }

    it('returns all models at once if the client sets no limit', async () => {
      assert.deepEqual((await list('')).listed, ids);
    });

    it('returns `limit` models from the beginning, after `after_id`, or before `before_id`', async () => {
      const first = await list('limit=2');
      assert.deepEqual(first.listed, ['m-1', 'm-2']);
      assert.deepEqual(first.ends, ['m-1', 'm-2', true]);
      const next = await list('limit=2&after_id=m-2');
      assert.deepEqual(
        [next.listed, next.ends],
        [
          ['m-3', 'm-4'],
          ['m-3', 'm-4', true],
        ],
      );
      const last = await list('limit=2&after_id=m-4');
      assert.deepEqual([last.listed, last.ends], [['m-5'], ['m-5', 'm-5', false]]);
      const before = await list('limit=2&before_id=m-4');
      assert.deepEqual(
        [before.listed, before.ends],
        [
          ['m-2', 'm-3'],
          ['m-2', 'm-3', true],
        ],
      );
      const beginning = await list('limit=2&before_id=m-3');
      assert.deepEqual(
        [beginning.listed, beginning.ends],
        [
          ['m-1', 'm-2'],
          ['m-1', 'm-2', false],
        ],
      );
    });

    it('continues after an alias, and after a model that is no longer listed', async () => {
      assert.deepEqual((await list('after_id=m-4-alias')).listed, ['m-5']);
      assert.equal((await list('after_id=gone')).status, 200);
    });

    for (const [query, param] of [
      ['limit=0', 'limit'],
      ['limit=', 'limit'],
      ['limit=1&limit=2', 'limit'],
      ['after_id=nothing', 'after_id'],
      ['after_id=m-1&before_id=m-3', 'before_id'],
      ['client_version=', 'client_version'],
    ] as const) {
      it(`refuses ${query} and names ${param}`, async () => {
        const { status, body } = await list(query);
        assert.deepEqual([status, body.error.code, body.error.param], [400, 'INVALID_FIELD', param]);
        assert.match(body.error.message, new RegExp(`^${param}: `));
      });
    }

    it('includes an empty `models` member for Codex only, beside the members that both SDKs read', async () => {
      const { body, listed } = await list('client_version=0.169.0');
      assert.deepEqual([body.models, listed], [[], ids]);
      assert.equal('models' in (await list('')).body, false);
    });
  });

  it('lists the models that the pipeline at the requested address serves, and returns 404 if the pipeline serves none', async () => {
    const { body } = await desk.get('/cost/v1/models', apiKey);
    assert.equal(body.data[0].upstreams, 1);
    assert.equal((await desk.get('/cost/v1/models/large', apiKey)).body.upstreams, 1);
    await desk.admin('POST', '/upstreams/two/disable', {});
    assert.deepEqual((await desk.get('/cost/v1/models', apiKey)).body.data, []);
    assert.equal((await desk.get('/cost/v1/models/large', apiKey)).status, 404);
    assert.equal((await desk.get('/v1/models', apiKey)).body.data.length, 1);
    await desk.admin('POST', '/upstreams/two/enable', {});
  });

  it('counts only the upstreams of the pipeline that serves the requested host, if the host has its own pipeline', async () => {
    const upstreamsAt = async (host: string) => {
      const headers = { host, 'x-api-key': apiKey };
      const { body } = await request(`${desk.publicUrl}/v1/models/large`, { headers });
      return ((await body.json()) as { upstreams: number }).upstreams;
    };
    assert.equal(await upstreamsAt('partner.example'), 1);
    assert.equal(await upstreamsAt('another.example'), 2);
  });

  it('returns the same list under every strategy with the same models, and 404 for an unknown strategy in the path', async () => {
    const { body } = await desk.get('/v1/models', apiKey);
    for (const strategy of ['default', 'quality', 'speed']) {
      assert.deepEqual((await desk.get(`/${strategy}/v1/models`, apiKey)).body, body);
    }
    assert.equal((await desk.get('/best/v1/models', apiKey)).status, 404);
  });

  it('returns one model by any of its names, and 404 for any other', async () => {
    for (const id of ['acme/large-4.5', 'acme%2Flarge-4.5', 'large', 'Large-4-5'])
      assert.equal((await desk.get(`/v1/models/${id}`, apiKey)).body.upstreams, 2, id);
    for (const id of ['', 'acme/absent', 'nothing', 'acme/large-4.5/'])
      assert.equal((await desk.get(`/v1/models/${id}`, apiKey)).status, 404, id);
  });

  it('shows an API key with a model list only the models of that list, whichever of their names the list has', async () => {
    const { accountId } = await desk.customer();
    const keyFor = async (allowedModels: string[]): Promise<string> =>
      (await desk.admin('POST', `/accounts/${accountId}/keys`, { name: 'narrow', allowedModels })).body.key;
    const one = await keyFor(['large']);
    const other = await keyFor(['something-else']);
    assert.equal((await desk.get('/v1/models', one)).body.data.length, 1);
    assert.equal((await desk.get('/v1/models/large', one)).status, 200);
    assert.deepEqual((await desk.get('/v1/models', other)).body.data, []);
    assert.equal((await desk.get('/v1/models/large', other)).status, 404);
  });

  it('counts the upstreams that are available now, and omits models that no caller may use', async () => {
    await desk.admin('POST', '/upstreams/one/disable', {});
    const { body } = await desk.get('/v1/models/large', apiKey);
    assert.equal(body.upstreams, 1);
    assert.equal(body.price_per_million.input, '8.00000000');
    await desk.admin('POST', '/upstreams/two/disable', {});
    assert.deepEqual((await desk.get('/v1/models', apiKey)).body.data, []);
    for (const name of ['one', 'two']) await desk.admin('POST', `/upstreams/${name}/enable`, {});
    assert.equal((await desk.get('/v1/models/large', apiKey)).body.upstreams, 2);
  });
});
