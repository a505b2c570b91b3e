import { join } from 'node:path';
import { expect } from 'chai';
import { parseDocument } from 'yaml';
import { ask, PATH } from '../support/calls';
import { operate } from '../support/command-line';
import { temporaryFolder } from '../support/configuration-folder';
import { type Answered, type Configured, MODEL } from '../support/gateway';
import { useGateway, useUpstream } from '../support/story';
import { until } from '../support/until';
import { messagesAnswer } from '../support/upstream';

const PROPOSALS = '/admin/v1/catalogue/proposals';

const USAGE = { input: 1_001, output: 203, cacheRead: 7 };

/** Returns a list of LiteLLM with these prices of the model, in USD per million tokens. */
function listWith(prices: { input?: number | string; output?: number; cacheRead?: number }): string {
  const perToken = (perMillion: number | string | undefined) =>
    typeof perMillion === 'number' ? Number((perMillion / 1e6).toPrecision(12)) : perMillion;
  return JSON.stringify({
    [MODEL]: {
      litellm_provider: 'acme',
      input_cost_per_token: perToken(prices.input),
      output_cost_per_token: perToken(prices.output),
      cache_read_input_token_cost: perToken(prices.cacheRead),
    },
  });
}

describe('A proposal of prices', () => {
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    env: { CONFIG_SOURCE: 'database' },
    upstreams: {
      acme: {
        url: upstream.url,
        models: {
          [MODEL]: { price: { input: 3, output: 15, cacheRead: 0.3, source: 'litellm', date: '2026-01-01' } },
          gone: { price: { input: 1, output: 1, source: 'litellm' } },
        },
      },
    },
  }));
  let accountId: string;
  let key: string;
  before(async () => {
    upstream.always(messagesAnswer({ usage: USAGE }));
    ({ accountId, key } = await gateway.newCustomer('100'));
  });

  const post = (path: string, body: object) => gateway.admin('POST', `${PROPOSALS}${path}`, body);
  const show = async (id: string): Promise<Configured> => (await gateway.admin('GET', `${PROPOSALS}/${id}`)).json;
  const review = (id: string, body: object) => gateway.admin('PATCH', `${PROPOSALS}/${id}`, body);
  const revision = async (): Promise<Configured> => (await gateway.admin('GET', '/admin/v1/config/revision')).json;
  const call = async () => {
    const { status, headers, text } = await gateway.call(PATH.messages, { key, body: ask() });
    expect(status, text).to.equal(200);
    return { cost: headers['x-ai-cost'], requestId: String(headers['x-svc-request-id']) };
  };
  const auditOf = async (id: string): Promise<string[]> =>
    (await gateway.admin('GET', `/admin/v1/audit?subject=proposal:${id}`)).json.items.map(
      ({ action }: { action: string }) => action,
    );

  async function propose(prices: Parameters<typeof listWith>[0]): Promise<Configured> {
    const made = await post('', { source: 'litellm', text: listWith(prices) });
    expect(made.status, made.text).to.equal(201);
    return made.json;
  }

  function refused(answer: Answered, status: number, code: string, param?: string): void {
    expect(answer.status, answer.text).to.equal(status);
    expect(answer.json.error.code).to.equal(code);
    if (param !== undefined) expect(answer.json.error.param).to.equal(param);
  }

  it('lists what differs, changes no price and no revision, and is kept', async () => {
    const before = await revision();
    const made = await propose({ input: 2, output: 15, cacheRead: 0.3 });
    const date = new Date().toISOString().slice(0, 10);
    expect(made).to.deep.include({ source: 'litellm', format: 'litellm', url: null, status: 'open', holdsFrom: null });
    expect(made['rows']).to.deep.equal([
      {
        ...{ id: '1', upstream: 'acme', model: MODEL, meter: 'input', old: '3.00000000', new: '2.00000000' },
        ...{ source: 'litellm', date, state: 'proposed', guard: null },
      },
    ]);
    expect(made['gone']).to.deep.equal([{ upstream: 'acme', model: 'gone' }]);
    expect(await revision()).to.deep.include({ number: before['number'], revision: before['revision'] });
    expect((await gateway.admin('GET', PROPOSALS)).json.items[0]).to.deep.equal(made);
    expect(await show(made['id'])).to.deep.equal(made);
    refused(await gateway.admin('GET', `${PROPOSALS}/00000000-0000-7000-8000-000000000000`), 404, 'NOT_FOUND');
    refused(await gateway.admin('GET', `${PROPOSALS}/nothing`), 404, 'NOT_FOUND');
  });

  it('is made of no list that is not JSON or has another format', async () => {
    const text = listWith({ input: 1, output: 1 });
    refused(await post('', { source: 'litellm', text: text.replace('0.000001', 'NaN') }), 400, 'INVALID_FIELD', 'text');
    refused(await post('', { source: 'models.dev', text }), 400, 'INVALID_FIELD', 'text');
    refused(await post('', { source: 'file', text: '{"a":1}' }), 400, 'INVALID_FIELD', 'text');
    refused(await post('', { source: 'other', text }), 400, 'INVALID_FIELD', 'source');
    refused(await post('', { source: 'litellm' }), 400, 'INVALID_FIELD', 'text');
    refused(await post('', { source: 'litellm', text, url: 'https://a.example' }), 400, 'INVALID_FIELD', 'url');
    expect((await post('', { source: 'file', text })).json.format).to.equal('litellm');
  });

  it('is fetched from no address that is private, has a password, or is none', async () => {
    for (const url of [
      `${upstream.url}/list`,
      'http://169.254.169.254/',
      'https://a:b@list.example/',
      'file:///etc/passwd',
      'x',
    ])
      refused(await post('', { source: 'litellm', url }), 400, 'INVALID_FIELD', 'url');
  });

  it('is reviewed by row: unknown rows are 400, stopped ones cannot be accepted, and a wrong review changes nothing', async () => {
    const made = await propose({ input: 2.5, output: 14, cacheRead: 0 });
    const id = made['id'] as string;
    expect(made['rows'].map((row: Configured) => [row['id'], row['meter'], row['guard']])).to.deep.equal([
      ['1', 'input', null],
      ['2', 'output', null],
      ['3', 'cacheRead', 'zero'],
    ]);
    refused(await review(id, { accept: ['1', '9'] }), 400, 'INVALID_FIELD', 'accept[1]');
    refused(await review(id, { accept: ['1'], refuse: ['1'] }), 400, 'INVALID_FIELD', 'refuse[0]');
    refused(await review(id, { accept: ['1', '3'] }), 409, 'CONFLICT');
    expect(await show(id)).to.deep.equal(made);
    refused(await post(`/${id}/apply`, {}), 409, 'CONFLICT');
    const states = async (body: object) => (await review(id, body)).json.rows.map((row: Configured) => row['state']);
    expect(await states({ accept: ['1', '2'] })).to.deep.equal(['accepted', 'accepted', 'stopped']);
    expect(await states({ refuse: ['1', '3'] })).to.deep.equal(['refused', 'accepted', 'stopped']);
  });

  it('is applied at its time: until then calls and records have the old prices and revision, and then the new ones', async () => {
    const { id } = await propose({ input: 2, output: 14.5, cacheRead: 0.3 });
    await review(id, { accept: ['1'], refuse: ['2'] });
    refused(await post(`/${id}/apply`, { from: 'tomorrow' }), 400, 'INVALID_FIELD', 'from');
    const plan = await post(`/${id}/apply`, { dryRun: true });
    expect(plan.status, plan.text).to.equal(200);
    expect(plan.json.changes[0]).to.deep.equal({
      what: `price acme/${MODEL} input`,
      before: '3.00000000',
      after: '2.00000000',
    });
    const before = await revision();
    const from = new Date(Date.now() + 3_000).toISOString();
    const applied = await post(`/${id}/apply`, { from, note: 'a cheaper December' });
    expect(applied.status, applied.text).to.equal(201);
    expect(applied.json).to.deep.include({ applied: true, number: null, newest: before['number'], holdsFrom: from });
    refused(await post(`/${id}/apply`, {}), 409, 'CONFLICT');
    refused(await review(id, { accept: ['2'] }), 409, 'CONFLICT');
    const early = await call();
    expect([early.cost, (await revision())['revision']]).to.deep.equal(['0.00605010', before['revision']]);
    const after = await until('the prices hold', async () => {
      const now = await revision();
      return now['number'] === before['number'] + 1 ? now : undefined;
    });
    expect(Date.now(), 'it waited').to.be.at.least(Date.parse(from));
    const late = await call();
    expect(late.cost).to.equal('0.00504910');
    const revisions = await Promise.all([early, late].map(({ requestId }) => gateway.record(key, requestId)));
    expect(revisions.map((record) => record['configRevision'])).to.deep.equal([before['revision'], after['revision']]);
    const { json: stored } = await gateway.admin('GET', `/admin/v1/config/revisions/${after['number']}`);
    expect(stored.note).to.equal('a cheaper December');
    expect(await show(id)).to.deep.include({ status: 'applied', number: after['number'] });
    expect(await auditOf(id)).to.deep.equal(['proposal.apply', 'proposal.review', 'proposal.create']);
  });

  it('stops a row whose old price is no longer the reviewed one, and applies the others', async () => {
    const one = await propose({ input: 1.5, output: 14, cacheRead: 0.3 });
    const other = await propose({ input: 1.75, output: 15, cacheRead: 0.3 });
    for (const each of [one, other])
      await review(each['id'], { accept: each['rows'].map((row: Configured) => row['id']) });
    const applied = await post(`/${other['id']}/apply`, {});
    expect(applied.json).to.deep.include({ applied: true });
    expect(applied.json.number).to.equal((await revision())['number']);
    expect((await post(`/${one['id']}/apply`, {})).status).to.equal(201);
    expect(
      (await show(one['id']))['rows'].map((row: Configured) => [row['meter'], row['state'], row['guard']]),
    ).to.deep.equal([
      ['input', 'stopped', 'changed'],
      ['output', 'accepted', null],
    ]);
    expect(await auditOf(one['id'])).to.include('proposal.stop');
    const { json: feed } = await gateway.admin('GET', '/admin/v1/events?order=newest');
    expect(feed.items[0]).to.deep.include({
      type: 'price.stopped',
      data: {
        ...{ proposalId: one['id'], row: '1', upstream: 'acme', model: MODEL, meter: 'input' },
        ...{ old: '2.00000000', new: '1.50000000' },
      },
    });
    expect((await call()).cost).to.equal('0.00459585');
    const late = await propose({ input: 1.6, output: 14, cacheRead: 0.3 });
    await review(late['id'], { accept: ['1'] });
    await gateway.admin('POST', '/admin/v1/config/revisions/1/rollback', {});
    const before = await revision();
    for (const dryRun of [true, false]) refused(await post(`/${late['id']}/apply`, { dryRun }), 409, 'CONFLICT');
    expect((await revision())['number']).to.equal(before['number']);
    expect(await show(late['id'])).to.deep.include({ status: 'open', holdsFrom: null });
  });

  it('stops a row whose price the configuration does not take any more, and delays no other proposal', async () => {
    const stuck = await propose({ input: 2.00000001, output: 15, cacheRead: 0.3 });
    const good = await propose({ input: 3, output: 14, cacheRead: 0.3 });
    for (const each of [stuck, good]) await review(each['id'], { accept: ['1'] });
    const from = new Date(Date.now() + 1_500).toISOString();
    for (const each of [stuck, good]) await post(`/${each['id']}/apply`, { from });
    // A price with a factor of 0.5 for a tier has one more decimal, which is one too many.
    const { number } = await revision();
    const { json: inForce } = await gateway.admin('GET', `/admin/v1/config/revisions/${number}`);
    const document = parseDocument(inForce.text);
    const price = ['serviceEndpoints', 'acme', 'models', MODEL, 'price'];
    document.setIn([...price, 'tiers'], { batch: { factor: 0.5 } });
    const changed = await gateway.admin('POST', '/admin/v1/config/revisions', { text: String(document) });
    expect(changed.status, changed.text).to.equal(201);
    const seen = await until('the good one holds', async () => {
      const shown = await show(good['id']);
      return shown['number'] === null ? undefined : shown;
    });
    expect(Date.now() - Date.parse(String(seen['holdsFrom']))).to.be.below(20_000);
    const { rows, status } = await show(stuck['id']);
    expect([status, rows[0].state, rows[0].guard]).to.deep.equal(['open', 'stopped', 'changed']);
    await gateway.admin('POST', '/admin/v1/config/revisions/1/rollback', {});
  });

  it('is open again if all its rows are refused while it waits', async () => {
    const { id } = await propose({ input: 2, output: 15, cacheRead: 0.3 });
    await review(id, { accept: ['1'] });
    await post(`/${id}/apply`, { from: '2999-01-01T00:00:00Z' });
    expect((await show(id))['status']).to.equal('applied');
    expect((await review(id, { refuse: ['1'] })).json).to.deep.include({ status: 'open', holdsFrom: null });
  });

  it('replays records: what they would have cost, each call rounded up once, also with a markup and in a tier', async () => {
    await gateway.admin('POST', '/admin/v1/config/revisions/1/rollback', {});
    const from = new Date().toISOString();
    const own = await gateway.newCustomer('10');
    const dear = await gateway.newCustomer('10', { markup: '1.5' });
    const calls = async (customer: string) => {
      for (let made = 0; made < 3; made += 1) {
        const { headers } = await gateway.call(PATH.messages, { key: customer, body: ask() });
        await gateway.record(customer, String(headers['x-svc-request-id']));
      }
    };
    await calls(own.key);
    await calls(dear.key);
    const { id } = await propose({ input: 2.00000001, output: 15, cacheRead: 0 });
    const path = `/admin/v1/usage/replay?from=${from}&proposal=${id}`;
    const { status, json, text } = await gateway.admin('GET', path);
    expect(status, text).to.equal(200);
    // 1,001 × 2.00000001 + 203 × 15 + 7 × 0.3 is 5,049.10001001 of a millionth; the row that sets cacheRead to 0 is stopped.
    // A markup rounds each price up: 2.00000001 × 1.5 is 3.00000002.
    expect(json).to.deep.equal({
      ...{ calls: 6, costUsd: '0.04537575', replayedUsd: '0.03786831' },
      items: [
        { accountId: own.accountId, model: MODEL, calls: 3, costUsd: '0.01815030', replayedUsd: '0.01514733' },
        { accountId: dear.accountId, model: MODEL, calls: 3, costUsd: '0.02722545', replayedUsd: '0.02272098' },
      ].sort((a, b) => (a.accountId < b.accountId ? -1 : 1)),
    });
    expect((await gateway.admin('GET', `${path}&account=${own.accountId}`)).json.calls).to.equal(3);
    expect((await gateway.balance(own.key)).balanceUsd).to.equal('9.98184970');
    await review(id, { refuse: ['1'] });
    const unchanged = (await gateway.admin('GET', path)).json;
    expect(unchanged.replayedUsd).to.equal(unchanged.costUsd);
    refused(await gateway.admin('GET', `/admin/v1/usage/replay?proposal=${id}`), 400, 'INVALID_FIELD', 'from');
    refused(await gateway.admin('GET', `/admin/v1/usage/replay?from=${from}`), 400, 'INVALID_FIELD', 'proposal');
    refused(await gateway.admin('GET', path.replace(id, own.accountId)), 404, 'NOT_FOUND');
    const shown = await operate(gateway, [
      'usage',
      'replay',
      '--from',
      from,
      '--prices',
      id,
      '--account',
      own.accountId,
    ]);
    expect(shown.notes).to.contain('3 calls cost USD 0.01815030');
    expect(accountId).not.to.equal(own.accountId);
  });
});

describe('The command `tollgate catalogue`', () => {
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    env: { CONFIG_SOURCE: 'database' },
    upstreams: {
      acme: { url: upstream.url, models: { [MODEL]: { price: { input: 3, output: 15, source: 'litellm' } } } },
    },
  }));

  it('makes a proposal of a file, asks about each row, and applies the accepted ones after a confirmation', async () => {
    const folder = temporaryFolder({ 'list.json': listWith({ input: 2, output: 14 }) });
    const questions: string[] = [];
    const tollgate = (args: readonly string[], ...answers: string[]) =>
      operate(gateway, ['catalogue', ...args], {
        ask: async (question) => {
          questions.push(question);
          return answers.shift() ?? '';
        },
      });
    const made = await tollgate(['fetch', join(folder, 'list.json'), '--json']);
    expect(made.status, made.notes).to.equal(0);
    const { id } = JSON.parse(made.out) as { id: string };
    expect((await tollgate(['fetch', join(folder, 'list.json'), '--url', 'https://a.example'])).status).to.equal(2);
    expect((await tollgate(['fetch', 'litellm', '--url', `${upstream.url}/list`])).notes).to.match(/public address/);
    expect((await tollgate(['list'])).out).to.match(new RegExp(`^${id} +file +open`, 'm'));
    const reviewed = await tollgate(['review', id], 'y', 'n');
    expect(questions).to.deep.equal([
      `1  acme/${MODEL} input  3.00000000 -> 2.00000000: accept? [y/n] `,
      `2  acme/${MODEL} output  15.00000000 -> 14.00000000: accept? [y/n] `,
    ]);
    expect(reviewed.out)
      .to.match(/input .* accepted/)
      .and.to.match(/output .* refused/);
    expect((await tollgate(['apply', id], 'n')).status).to.equal(1);
    const waiting = await tollgate(['apply', id, '--from', '2999-01-01T00:00Z'], 'y');
    expect(waiting.notes).to.contain('applied to every node at 2999-01-01T00:00:00.000Z');
    expect((await tollgate(['review', id, '--refuse', '1'])).notes).to.contain('is open');
    await tollgate(['review', id, '--accept', '1']);
    const applied = await tollgate(['apply', id, '--yes', '--note', 'by hand']);
    expect(applied.status, applied.notes).to.equal(0);
    expect(applied.notes)
      .to.match(/^Revision \d+ \([0-9a-f]{12}\) is applied\.$/m)
      .and.to.contain('took it (1 of 1)');
    expect((await tollgate(['show', id])).notes).to.contain('is applied from');
  });
});
