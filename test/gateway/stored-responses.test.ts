import { expect } from 'chai';
import OpenAI from 'openai';
import { responsesUsage } from '../../demo/dialects/responses';
import { ask, askIn, PATH } from '../support/calls';
import { MODEL, UPSTREAM_CREDENTIAL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { neverAnswer, respond, responsesAnswer, responsesFailure, responsesStream } from '../support/upstream';

describe('Responses that a vendor keeps', () => {
  const acme = useUpstream();
  const other = useUpstream();
  let made = 0;

  const gateway = useGateway(() => {
    const models = { [MODEL]: { context: 200_000, tokenizerFactor: 1 } };
    const timeouts = { connect: '500ms', headers: '500ms', idle: '1s' };
    return {
      upstreams: {
        acme: { url: `${acme.url}/base`, models: { ...models, 'acme-only': {} }, timeouts },
        other: { url: other.url, tier: 'official', models },
      },
    };
  });
  beforeEach(() => {
    for (const each of [acme, other]) {
      each.reset();
      each.always(responsesAnswer({ id: 'resp_next' }));
    }
  });

  const call = (key: string, more: Record<string, unknown>, path = PATH.responses) =>
    gateway.call(path, { key, body: { ...askIn('responses'), store: undefined, ...more } });
  const asked = () => acme.calls.length + other.calls.length;

  /** Makes a response for a new customer that `acme` keeps. */
  async function newResponse(stream = false, usd = '10', limits = {}) {
    const { key } = await gateway.newCustomer(usd, limits);
    made += 1;
    const id = `resp_${made}`;
    const said = { id, usage: { input: 1_000, output: 500 } };
    acme.next(stream ? responsesStream(said) : responsesAnswer(said));
    const first = await call(key, { model: 'acme-only', stream });
    expect(first.text).to.include(id);
    acme.reset();
    other.reset();
    acme.always(responsesAnswer({ id: 'resp_next' }));
    other.always(responsesAnswer({ id: 'resp_next' }));
    return { key, id };
  }

  for (const stream of [false, true]) {
    it(`are continued at the upstream that stores them (${stream ? 'streamed' : 'in one piece'})`, async () => {
      const { key, id } = await newResponse(stream);
      const answer = await call(key, { previous_response_id: id });
      expect(answer.status, answer.text).to.equal(200);
      expect(answer.headers['x-routing-provider']).to.equal('acme');
      expect(acme.calls[0]?.json).to.include({ previous_response_id: id });
      expect(other.calls).to.have.length(0);
    });
  }

  for (const path of [PATH.chat, PATH.messages])
    it(`get 404 at ${path}, where no responses exist, and the gateway calls no upstream`, async () => {
      const { key, id } = await newResponse();
      for (const named of [id, 'resp_unknown']) {
        const { status, json } = await gateway.call(path, { key, body: ask({ previous_response_id: named }) });
        expect([status, json.error.code, json.error.param], named).to.deep.equal([
          404,
          'KEPT_OBJECT_NOT_FOUND',
          'previous_response_id',
        ]);
      }
      expect(asked()).to.equal(0);
    });

  it('get 404 for another account; the gateway calls no upstream and charges nothing', async () => {
    const { id } = await newResponse();
    const { key } = await gateway.newCustomer('10');
    const named = await call(key, { previous_response_id: id });
    expect([named.status, named.json.error.code, named.json.error.param]).to.deep.equal([
      404,
      'KEPT_OBJECT_NOT_FOUND',
      'previous_response_id',
    ]);
    for (const [method, path] of [
      ['GET', `/v1/responses/${id}`],
      ['DELETE', `/v1/responses/${id}`],
      ['POST', `/v1/responses/${id}/cancel`],
      ['GET', `/cost/v1/responses/${id}/input_items`],
    ] as const) {
      const answer = await gateway.call(path, { method, key });
      expect([answer.status, answer.json.error.code], `${method} ${path}`).to.deep.equal([
        404,
        'KEPT_OBJECT_NOT_FOUND',
      ]);
    }
    expect(asked()).to.equal(0);
    expect((await gateway.balance(key)).availableUsd).to.equal('10.00000000');
  });

  it('do not include answers with `store: false`, which get 404', async () => {
    const { key } = await gateway.newCustomer('10');
    other.next(responsesAnswer({ id: 'resp_not_kept' }));
    await call(key, { store: false });
    expect((await call(key, { previous_response_id: 'resp_not_kept' })).status).to.equal(404);
  });

  it('are retrieved, cancelled and deleted by the SDK at their upstream and with their credential, free of charge', async () => {
    const { key, id } = await newResponse();
    const { availableUsd } = await gateway.balance(key);
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
    acme.always(respond({ body: { id, object: 'response', output: [], data: [], has_more: false } }));
    expect((await openai.responses.retrieve(id, { include: ['reasoning.encrypted_content'] })).id).to.equal(id);
    expect((await openai.responses.cancel(id)).id).to.equal(id);
    await openai.responses.inputItems.list(id, { limit: 5 });
    await openai.responses.delete(id);
    expect(acme.calls.map(({ method, path }) => `${method} ${path}`)).to.deep.equal([
      `GET /base/v1/responses/${id}?include%5B%5D=reasoning.encrypted_content`,
      `POST /base/v1/responses/${id}/cancel`,
      `GET /base/v1/responses/${id}/input_items?limit=5`,
      `DELETE /base/v1/responses/${id}`,
    ]);
    for (const { headers } of acme.calls) expect(headers.authorization).to.equal(`Bearer ${UPSTREAM_CREDENTIAL}`);
    expect(other.calls).to.have.length(0);
    expect((await gateway.balance(key)).availableUsd).to.equal(availableUsd);
  });

  it('are not read where they no longer meet the demands of the account, but can be deleted', async () => {
    const { key, id } = await newResponse();
    const ask = (method: string, demands: string) =>
      gateway.call(`/v1/responses/${id}`, { method, key, headers: { 'x-svc-require': demands } });
    const refused = await ask('GET', 'retention=none');
    expect([refused.status, refused.json.error.code]).to.deep.equal([400, 'NO_CANDIDATE_ALLOWED']);
    expect(refused.json.error.details.excluded).to.deep.equal([
      { upstream: 'acme', fact: 'retention', demanded: 'none', has: 'unknown' },
    ]);
    expect((await ask('GET', 'region')).json.error.param).to.equal('x-svc-require');
    expect(asked()).to.equal(0);
    expect((await ask('GET', 'max-input-price=0')).status).to.equal(200);
    expect((await ask('DELETE', 'retention=none')).status).to.equal(200);
  });

  it('can be read as many times per minute as their API key may make calls', async () => {
    const { key, id } = await newResponse(false, '10', { callsPerMinute: 3 });
    acme.always(respond({ body: { id } }));
    const read = () => gateway.call(`/v1/responses/${id}`, { method: 'GET', key });
    expect([(await read()).status, (await read()).status]).to.deep.equal([200, 200]);
    for (const [method, path] of [
      ['GET', ''],
      ['DELETE', ''],
      ['POST', '/cancel'],
      ['GET', '/input_items'],
    ] as const) {
      const limited = await gateway.call(`/v1/responses/${id}${path}`, { method, key });
      expect([limited.status, limited.json.error.code], method + path).to.deep.equal([429, 'KEY_RATE_LIMITED']);
    }
    expect((await call(key, { model: 'acme-only' })).status).to.equal(429);
    expect(acme.calls).to.have.length(2);
  });

  it('affect the health of their upstream when clients read them: successes and failures count as for calls', async () => {
    const { key, id } = await newResponse();
    const read = () => gateway.call(`/v1/responses/${id}`, { method: 'GET', key });
    const counted = async () => {
      const { json } = await gateway.admin('GET', '/admin/v1/upstreams');
      return (
        (json.items as { name: string; attempts: { answered: number; failed: number } }[]).find(
          ({ name }) => name === 'acme',
        )?.attempts ?? { answered: 0, failed: 0 }
      );
    };
    const before = await counted();
    acme.next(
      respond({ body: { id } }),
      responsesFailure(500),
      neverAnswer(),
      responsesFailure(404),
      responsesFailure(403),
    );
    const statuses = [];
    for (let count = 0; count < 5; count += 1) statuses.push((await read()).status);
    expect(statuses).to.deep.equal([200, 500, 504, 404, 403]);
    const { answered, failed } = await counted();
    expect([answered - before.answered, failed - before.failed]).to.deep.equal([1, 2]);
    acme.next(responsesFailure(429, {}, { 'retry-after': '30' }));
    expect((await read()).status).to.equal(429);
    const rests = await read();
    expect([rests.status, rests.json.error.code]).to.deep.equal([429, 'UPSTREAM_RATE_LIMITED']);
    expect((await gateway.admin('POST', '/admin/v1/upstreams/acme/enable')).status).to.equal(200);
  });

  it('are not streamed again, however often and in whatever form the query requests a stream', async () => {
    const { key, id } = await newResponse();
    acme.always(respond({ body: { id } }));
    for (const query of [
      'stream=true',
      'stream=false&stream=true',
      'stream=true&stream=false',
      'stream=True',
      'stream=1',
      'stream',
      'Stream=true',
      'stream[]=true',
      'str%65am=tru%65',
    ]) {
      const { status, json } = await gateway.call(`/v1/responses/${id}?${query}`, { method: 'GET', key });
      expect([status, json.error?.param], query).to.deep.equal([400, 'stream']);
    }
    expect(acme.calls).to.have.length(0);
    expect((await gateway.call(`/v1/responses/${id}?stream=false`, { method: 'GET', key })).status).to.equal(200);
  });

  it('return the errors of the vendor, and 504 if the vendor does not answer', async () => {
    const { key, id } = await newResponse();
    acme.next(responsesFailure(404, { message: 'it has expired' }));
    const gone = await gateway.call(`/v1/responses/${id}`, { method: 'GET', key });
    expect([gone.status, gone.json.error.message]).to.deep.equal([404, 'it has expired']);
    expect(gone.headers['x-svc-source']).to.equal('provider');
    acme.next(neverAnswer());
    const silent = await gateway.call(`/v1/responses/${id}`, { method: 'GET', key });
    expect([silent.status, silent.json.error.code]).to.deep.equal([504, 'UPSTREAM_TIMEOUT']);
  });

  it('are compacted by a call for which the gateway takes a hold and charges, as for any other call', async () => {
    const { key, id } = await newResponse();
    const before = Number((await gateway.balance(key)).availableUsd);
    const usage = responsesUsage({ input: 2_000, output: 300, cacheRead: 0, cacheWrite: 0 });
    const compacted = { id: 'resp_compacted', object: 'response.compaction', created_at: 1, output: [], usage };
    acme.next(respond({ body: compacted }));
    const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: key, maxRetries: 0 });
    const { data, response } = await openai.responses
      .compact({ model: MODEL as 'gpt-5.4', previous_response_id: id })
      .withResponse();
    expect(data.id).to.equal('resp_compacted');
    expect(acme.calls[0]?.path).to.equal('/base/v1/responses/compact');
    expect(acme.calls[0]?.json).to.deep.equal({ model: MODEL, previous_response_id: id });
    const record = await gateway.record(key, response.headers.get('x-svc-request-id') ?? '');
    expect(record).to.include({ cost: '0.01050000', billing: 'actual', protocol: 'responses' });
    expect(Number((await gateway.balance(key)).availableUsd)).to.be.closeTo(before - 0.0105, 1e-9);
    expect((await call(key, { previous_response_id: 'resp_compacted' })).status).to.equal(404);
  });
});
