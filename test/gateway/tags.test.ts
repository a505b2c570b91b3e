import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { ask, askIn, PATH } from '../support/calls';
import { answerOf } from '../support/dialects';
import { MODEL } from '../support/gateway';
import { setPolicy } from '../support/policy-settings';
import { useGateway, useUpstream } from '../support/story';
import { TestSocket } from '../support/test-socket';
import { until } from '../support/until';
import { embeddingsAnswer, messagesAnswer, responsesStream } from '../support/upstream';

const EMBED = 'acme-embed';
const SESSION = '6a1f0c3e-57b2-4f0e-9f55-2f4f3f7f8a10';
const hashed = (text: string) => `hash:${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;

describe('The tags of a call', function () {
  this.timeout(120_000);
  const upstream = useUpstream();
  const gateway = useGateway(() => ({
    upstreams: {
      acme: { url: upstream.url },
      sockets: { url: upstream.url, webSocket: true, models: { socketed: {} } },
      embeds: {
        url: upstream.url,
        adapter: ['chat', 'embeddings'],
        models: { [EMBED]: { context: 8_192, maxOutput: 0, estimatedMaxTokens: 0, price: { input: 1, output: 0 } } },
      },
    },
    env: { DIRECT_DOMAIN: 'gateway.example' },
    configure: (config) => {
      setPolicy(config, 'model-request', { forwardHeaderPrefixes: ['x-', 'anthropic-'] });
      setPolicy(config, 'model-request', { recordSessions: false }, 'speed');
    },
  }));
  let key: string;
  let keyId: string;
  let accountId: string;
  beforeEach(async () => {
    upstream.reset();
    upstream.always(messagesAnswer());
    ({ key, keyId, accountId } = await gateway.newCustomer('10'));
  });

  interface Asked {
    readonly path?: string;
    readonly body?: object;
    readonly headers?: Record<string, string>;
    readonly with?: string;
  }
  const send = ({ path = '/v1/messages', body = ask(), headers = {}, with: shown = key }: Asked) =>
    gateway.call(path, { key: shown, headers, body });
  const recorded = async (asked: Asked) => {
    const answer = await send(asked);
    assert.equal(answer.status, 200, answer.text);
    return gateway.record(asked.with ?? key, answer.headers['x-svc-request-id'] ?? '');
  };
  const made = async (method: string, path: string, body: object, status = 200) => {
    const answer = await gateway.admin(method, `/admin/v1${path}`, body);
    assert.equal(answer.status, status, answer.text);
    return answer.json;
  };
  const tagged = (tags: string) => ({ headers: { 'x-svc-tags': tags } });
  const get = async (path: string) => (await gateway.call(path, { method: 'GET', key })).json;

  it('are columns of its record with the team and the member of its key at that time', async () => {
    const team = await made('POST', `/accounts/${accountId}/teams`, { name: 'research' }, 201);
    const email = `tags-${keyId}@example.com`;
    const user = await made('POST', `/accounts/${accountId}/users`, { email, password: 'correct horse battery' }, 201);
    await made('PATCH', `/keys/${keyId}`, { teamId: team.id, memberId: user.id });
    const body = ask({ metadata: { user_id: 'u-17' } });
    const record = await recorded({ body, ...tagged('project=alpha, customer=4711') });
    const wanted = {
      endUserId: 'u-17',
      teamId: team.id,
      memberId: user.id,
      tags: { project: 'alpha', customer: '4711' },
    };
    const names = Object.keys(record);
    const ours = names.slice(names.indexOf('agentId') + 1, names.indexOf('region'));
    assert.deepEqual(ours, ['endUserId', 'teamId', 'memberId', 'tags']);
    assert.deepEqual(pick(record, Object.keys(wanted)), wanted);
    await made('PATCH', `/keys/${keyId}`, { teamId: null, memberId: null });
    const later = await recorded({});
    assert.deepEqual(pick(later, Object.keys(wanted)), { endUserId: null, teamId: null, memberId: null, tags: null });

    const refused = await send({ body: ask({ model: 'no such model' }), ...tagged('customer=4712') });
    const ofRefused = await gateway.record(key, refused.headers['x-svc-request-id'] ?? '');
    assert.deepEqual(pick(ofRefused, ['status', 'tags']), { status: 400, tags: { customer: '4712' } });

    const { text } = await gateway.call(`/v1/usage.csv?tags=customer=4711`, { method: 'GET', key });
    const [head = '', line = '', ...more] = text.trimEnd().split('\r\n');
    assert.deepEqual(more, []);
    assert(head.includes(',agentId,endUserId,teamId,memberId,tags'), head);
    assert(line.includes(`,u-17,${team.id},${user.id},"{""project"":""alpha"",""customer"":""4711""}"`), line);
    const admin = await gateway.admin('GET', `/admin/v1/usage?account=${accountId}&endUser=u-17`);
    assert.deepEqual(pick(admin.json.items[0], Object.keys(wanted)), wanted);
  });

  const endUsers: readonly [what: string, asked: () => Asked, endUser: string | null][] = [
    ['metadata.user_id of Messages', () => ({ body: ask({ metadata: { user_id: 'u-1' } }) }), 'u-1'],
    [
      'a user_id that looks like no id, as its hash',
      () => ({ body: ask({ metadata: { user_id: 'a@b.example' } }) }),
      hashed('a@b.example'),
    ],
    [
      'no user_id of Claude Code',
      () => ({ body: ask({ metadata: { user_id: JSON.stringify({ device_id: 'd', session_id: SESSION }) } }) }),
      null,
    ],
    [
      'safety_identifier of Chat before user',
      () => ({ path: PATH.chat, body: askIn('chat', { user: 'u-2', safety_identifier: 's-2' }) }),
      's-2',
    ],
    [
      'user of Chat',
      () => ({ path: PATH.chat, body: askIn('chat', { user: 'u-3', metadata: { user_id: 'no' } }) }),
      'u-3',
    ],
    [
      'safety_identifier of Responses',
      () => ({ path: PATH.responses, body: askIn('responses', { safety_identifier: 's-4' }) }),
      's-4',
    ],
    [
      'user of Responses beside an empty safety_identifier',
      () => ({ path: PATH.responses, body: askIn('responses', { user: 'u-5', safety_identifier: '' }) }),
      'u-5',
    ],
    [
      'user of embeddings',
      () => ({ path: '/v1/embeddings', body: { model: EMBED, input: 'Hello', user: 'u-6' } }),
      'u-6',
    ],
    [
      'no user that is null or a number',
      () => ({ path: PATH.chat, body: askIn('chat', { user: 7, safety_identifier: null }) }),
      null,
    ],
    [
      'no end user in a pipeline with `recordSessions: false`',
      () => ({ path: '/speed/v1/messages', body: ask({ metadata: { user_id: 'u-7' } }) }),
      null,
    ],
  ];
  for (const [what, asked, endUser] of endUsers)
    it(`have the end user from ${what}`, async () => {
      const { path = PATH.messages } = asked();
      if (path === PATH.chat) upstream.always(answerOf.chat());
      if (path === PATH.responses) upstream.always(answerOf.responses());
      if (path === '/v1/embeddings') upstream.always(embeddingsAnswer());
      assert.equal((await recorded(asked()))['endUserId'], endUser);
    });

  it('need an end user of at most 4,096 bytes', async () => {
    const answer = await send({ path: PATH.chat, body: askIn('chat', { user: 'x'.repeat(5_000) }) });
    assert.deepEqual([answer.status, answer.json.error.param], [400, 'user']);
  });

  for (const header of ['project', 'Project=a', 'a=1,a=2', 'a=1,b=2,c=3,d=4,e=5', 'session=s', 'a='])
    it(`refuse the header ${header} before money is held and an upstream is asked`, async () => {
      const answer = await send({ ...tagged(header), body: ask({ max_tokens: 4_000 }) });
      const { code, param } = answer.json.error;
      assert.deepEqual([answer.status, code, param], [400, 'INVALID_FIELD', 'x-svc-tags']);
      assert.equal(upstream.calls.length, 0);
      const record = await gateway.record(key, answer.headers['x-svc-request-id'] ?? '');
      assert.deepEqual(pick(record, ['billing', 'errorCode', 'tags']), {
        billing: 'released',
        errorCode: 'INVALID_FIELD',
        tags: null,
      });
    });

  it('reach no upstream, although a pipeline forwards all headers that begin with x-', async () => {
    const headers = { 'x-svc-tags': 'customer=4711', 'x-other': 'forwarded' };
    await send({ headers });
    await send({ headers: { ...headers, host: 'acme.p.gateway.example' } });
    upstream.always(answerOf.chat());
    await send({ path: PATH.chat, body: askIn('chat'), headers });
    upstream.always(embeddingsAnswer());
    await send({ path: '/v1/embeddings', body: { model: EMBED, input: 'Hello' }, headers });
    upstream.always(responsesStream());
    for (const model of [MODEL, 'socketed']) {
      const socket = await TestSocket.open(gateway, key, { headers });
      const events = await socket.call({ model });
      assert.equal(events.at(-1).type, 'response.completed');
      socket.close();
      await socket.closed;
    }
    const seen = [...upstream.calls.map((each) => each.headers), ...upstream.webSockets.handshakes];
    assert(seen.length >= 6);
    assert(seen.filter((each) => each['x-other'] === 'forwarded').length >= 5, JSON.stringify(seen));
    for (const each of seen) assert.equal(each['x-svc-tags'], undefined);
    const { items } = await until('all calls are recorded', async () => {
      const page = await get('/v1/usage?tags=customer=4711');
      return page.items.length === 6 ? page : undefined;
    });
    assert.deepEqual([...new Set(items.map(({ status }: { status: number }) => status))], [200]);
    assert.equal(items.filter(({ strategy }: { strategy: string }) => strategy === 'direct').length, 1);
  });

  it('filter and group lists and totals, in which each call is in one group', async () => {
    const team = await made('POST', `/accounts/${accountId}/teams`, { name: 'sales' }, 201);
    const other = await made('POST', `/accounts/${accountId}/keys`, { name: 'of sales', teamId: team.id }, 201);
    const asked: Asked[] = [
      { ...tagged('customer=1,project=a'), body: ask({ metadata: { user_id: 'u-1' } }) },
      tagged('customer=1'),
      tagged('customer=2,project=a'),
      { with: other.key, headers: { 'x-session-id': 's-1' } },
    ];
    for (const each of asked) await recorded(each);
    const count = async (query: string) => (await get(`/v1/usage?${query}`)).items.length;
    assert.equal(await count('tags=customer=1'), 2);
    assert.equal(await count('tags=customer=1,project=a'), 1);
    assert.equal(await count('tags=project=a'), 2);
    assert.equal(await count(`team=${team.id}`), 1);
    assert.equal(await count('endUser=u-1&tags=customer=1'), 1);
    assert.equal(await count(`member=${team.id}`), 0);
    const wrong = await gateway.call('/v1/usage?tags=customer', { method: 'GET', key });
    assert.deepEqual([wrong.status, wrong.json.error.param], [400, 'tags']);

    const cost = (calls: number) => (calls * 0.000105).toFixed(8);
    const group = (id: string, name: string, calls: number) => ({ id, name, calls, costUsd: cost(calls) });
    const groups = async (by: string, more = '') => (await get(`/v1/usage/totals?by=${by}${more}`)).groups;
    assert.deepEqual(await groups('tag:customer'), [group('1', '1', 2), group('', 'none', 1), group('2', '2', 1)]);
    assert.deepEqual(await groups('tag:customer', '&tags=project=a'), [group('1', '1', 1), group('2', '2', 1)]);
    assert.deepEqual(await groups('team'), [group('', 'none', 3), group(team.id, 'sales', 1)]);
    assert.deepEqual(await groups('key', `&team=${team.id}`), [group(other.id, 'of sales', 1)]);
    assert.deepEqual(await groups('endUser'), [group('', 'none', 3), group('u-1', 'u-1', 1)]);
    assert.deepEqual(await groups('session'), [group('', 'none', 3), group('s-1', 's-1', 1)]);
    assert.deepEqual(await groups('model'), [group(MODEL, MODEL, 4)]);
    const all = await get('/v1/usage/totals');
    assert.deepEqual(pick(all, ['calls', 'costUsd', 'groups']), { calls: 4, costUsd: cost(4), groups: undefined });
    const ofAdmin = await gateway.admin('GET', `/admin/v1/usage/totals?account=${accountId}&by=upstream`);
    assert.deepEqual(ofAdmin.json, { ...all, groups: [group('acme', 'acme', 4)] });
    const everyone = await gateway.admin('GET', '/admin/v1/usage/totals?by=key');
    assert(everyone.json.groups.some(({ id }: { id: string }) => id === keyId));
    for (const by of ['tag:', 'tag:Customer', "tag:a'b", 'name']) {
      const answer = await gateway.call(`/v1/usage/totals?by=${encodeURIComponent(by)}`, { method: 'GET', key });
      assert.deepEqual([answer.status, answer.json.error.param], [400, 'by']);
    }
  });

  describe('that a key or its team requires', () => {
    const refusal = async (asked: Asked = {}) => {
      const answer = await send(asked);
      if (answer.status === 200) return 'answered';
      assert.deepEqual(
        [answer.status, answer.json.error.code, answer.json.error.param],
        [400, 'INVALID_FIELD', 'x-svc-tags'],
      );
      return /requires the tag (\w+)/.exec(answer.json.error.message)?.[1];
    };

    it('are named in the refusal of a call that lacks them, which is recorded and holds nothing', async () => {
      assert.equal(await refusal(), 'answered');
      const changed = await made('PATCH', `/keys/${keyId}`, { requiredTags: ['customer', 'end_user'] });
      assert.deepEqual(changed.requiredTags, ['customer', 'end_user']);
      const asked = upstream.calls.length;
      const first = await send({});
      const record = await gateway.record(key, first.headers['x-svc-request-id'] ?? '');
      assert.deepEqual(pick(record, ['status', 'billing', 'cost']), {
        status: 400,
        billing: 'released',
        cost: '0.00000000',
      });
      assert.equal(await refusal(), 'customer');
      assert.equal(await refusal(tagged('customer=1')), 'end_user');
      assert.equal((await gateway.balance(key)).heldUsd, '0.00000000');
      assert.equal(upstream.calls.length, asked);
      assert.equal(await refusal({ ...tagged('customer=1'), body: ask({ metadata: { user_id: 'u' } }) }), 'answered');
      await made('PATCH', `/keys/${keyId}`, { requiredTags: null });
      assert.equal(await refusal(), 'answered');
    });

    it('hold for the keys of a team once the change is answered, also for keys that join, and until they leave', async () => {
      const body = { name: 'research', requiredTags: ['customer'] };
      const team = await made('POST', `/accounts/${accountId}/teams`, body, 201);
      assert.deepEqual(team.requiredTags, ['customer']);
      await made('PATCH', `/keys/${keyId}`, { teamId: team.id, requiredTags: ['project'] });
      assert.equal(await refusal(), 'customer');
      assert.equal(await refusal(tagged('customer=1')), 'project');
      await made('PATCH', `/teams/${team.id}`, { requiredTags: ['session'] });
      assert.equal(await refusal(tagged('project=1')), 'session');
      assert.equal(await refusal({ headers: { 'x-svc-tags': 'project=1', 'x-session-id': 's' } }), 'answered');
      assert.equal((await made('PATCH', `/teams/${team.id}`, { requiredTags: null })).requiredTags, null);
      assert.equal(await refusal(tagged('project=1')), 'answered');
      await made('PATCH', `/teams/${team.id}`, { requiredTags: ['session'] });
      await made('PATCH', `/keys/${keyId}`, { teamId: null });
      assert.equal(await refusal(tagged('project=1')), 'answered');
      const audit = await gateway.admin('GET', `/admin/v1/audit?subject=team:${team.id}`);
      assert(audit.text.includes('"requiredTags":["session"]'), audit.text);
    });

    for (const [requiredTags, param] of [
      [['Customer'], 'requiredTags[0]'],
      [['customer', 'customer'], 'requiredTags'],
      [['a', 'b', 'c', 'd', 'e'], 'requiredTags'],
      ['customer', 'requiredTags'],
    ] as const)
      it(`cannot be ${JSON.stringify(requiredTags)}`, async () => {
        for (const path of [`/keys/${keyId}`, `/teams/${keyId}`]) {
          const answer = await gateway.admin('PATCH', `/admin/v1${path}`, { requiredTags });
          assert.deepEqual([answer.status, answer.json.error.param], [400, param]);
        }
      });
  });
});

function pick(value: object, names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, (value as Record<string, unknown>)[name]]));
}
