import { strict as assert } from 'node:assert';
import { request } from 'node:http';
import { offeringId } from '../../plugins/sandbox/offerings/offering';
import { startGateway, type TestGateway } from '../support/gateway';
import {
  assertBooksAreClosed,
  assertRefused,
  createSandbox,
  creation,
  running,
  SANDBOX_GATEWAY,
  SMALL,
  SMALL_ID,
  terminate,
  units,
  waitForState,
} from '../support/sandboxes';

/** An offering without any capability except running. */
const BARE = { ...SMALL, suspension: 'none', resumeOnAccess: false, hourlyUsd: { RUNNING: 3.6 }, capabilities: [] };

describe('A sandbox, from its creation to its end,', function () {
  this.timeout(90_000);
  let gateway: TestGateway;
  before(async () => {
    gateway = await startGateway({
      ...SANDBOX_GATEWAY,
      configure: (config) => {
        config['offerings'] = { small: SMALL, bare: BARE };
      },
    });
  });
  after(async () => {
    await gateway?.stop();
  });

  const get = async (key: string, path: string) => (await gateway.call(path, { method: 'GET', key })).json;
  const ask = (key: string, id: string, verb: string, options: object = {}) =>
    gateway.call(`/v1/sandboxes/${id}/${verb}`, { key, ...options });

  it('is changed with If-Match only if the header names its current version', async () => {
    const { key } = await gateway.newCustomer('10');
    const record = await running(gateway, key, 'versions');
    const shown = await gateway.call(`/v1/sandboxes/${record.id}`, { method: 'GET', key });
    assert.equal(shown.headers['etag'], `"${shown.json.stateVersion}"`);
    const stale = await ask(key, record.id, 'suspend', { headers: { 'if-match': '"1"' } });
    assert.equal(stale.status, 412, stale.text);
    assert.equal(stale.json.error.code, 'PRECONDITION_FAILED');
    const etag = String(shown.headers['etag']);
    assert.equal((await ask(key, record.id, 'suspend', { headers: { 'if-match': etag } })).status, 202);
    const suspended = await waitForState(gateway, key, record.id, 'SUSPENDED');
    assert.ok(suspended.stateVersion > shown.json.stateVersion);
    const ended = await terminate(gateway, key, record.id);
    const versions = ended.events.map(({ stateVersion }: { stateVersion: number }) => stateVersion);
    assert.deepEqual(
      versions,
      [...versions].sort((one, other) => one - other),
    );
    assert.equal(new Set(versions).size, versions.length);
    assertBooksAreClosed(ended);
  });

  it('runs one operation for requests with the same verb and idempotency key', async () => {
    const { key } = await gateway.newCustomer('10');
    const { id } = await running(gateway, key, 'operations');
    const body = { idempotencyKey: 'pause' };
    const one = await ask(key, id, 'suspend', { body });
    const two = await ask(key, id, 'suspend', { body });
    assert.equal(one.json.id, two.json.id);
    await waitForState(gateway, key, id, 'SUSPENDED');
    const done = await get(key, `/v1/sandboxes/${id}/operations/${one.json.id}`);
    assert.equal(done.status, 'SUCCEEDED');
    assert.equal((await ask(key, id, 'resume', { body })).status, 202);
    await waitForState(gateway, key, id, 'RUNNING');
    const same = { body: { idempotencyKey: 'operations' } };
    const ending = await ask(key, id, 'terminate', same);
    assert.deepEqual([ending.status, ending.json.type], [202, 'TERMINATE']);
    const ended = await waitForState(gateway, key, id, 'TERMINATED');
    assertBooksAreClosed(ended);
    const states = ended.usageSegments.map(({ state }: { state: string }) => state);
    assert.deepEqual(states, ['RUNNING', 'SUSPENDED', 'RUNNING']);
    const { balanceUsd, heldUsd } = await gateway.balance(key);
    assert.deepEqual([units(balanceUsd), heldUsd], [1_000_000_000n - units(ended.totalCost), '0.00000000']);
    // Several terminations at once make one operation.
    const again = { body: { idempotencyKey: 'after the end' } };
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(key, id, 'terminate', again)));
    assert.deepEqual([...new Set(answers.map(({ status, json }) => `${status} ${json.noop} ${json.id}`))].length, 1);
    assert.equal(answers[0]?.json.noop, true);
  });

  it('is resumed only if the balance covers the price of running', async () => {
    const { key, accountId } = await gateway.newCustomer('0.90');
    const { id } = await running(gateway, key, 'poor');
    await ask(key, id, 'suspend');
    await waitForState(gateway, key, id, 'SUSPENDED');
    const rest = (await gateway.balance(key)).availableUsd;
    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/debits`, { amountUsd: rest, idempotencyKey: 'rest' });
    const { heldUsd } = await gateway.balance(key);
    // The first hold still exists. What the sandbox has used of it is missing for the resume.
    const answer = await ask(key, id, 'resume');
    assert.equal(answer.status, 402, answer.text);
    assert.equal(answer.json.error.code, 'INSUFFICIENT_BALANCE');
    assert.equal((await gateway.balance(key)).heldUsd, heldUsd);
    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/credits`, { amountUsd: '1', idempotencyKey: 'more' });
    assert.equal((await ask(key, id, 'resume')).status, 202);
    await waitForState(gateway, key, id, 'RUNNING');
    assertBooksAreClosed(await terminate(gateway, key, id));
  });

  it('can be terminated while it is being created', async () => {
    const { key } = await gateway.newCustomer('10');
    const made = await createSandbox(gateway, key, creation('brief'));
    const answer = await gateway.call(`/v1/sandboxes/${made.id}`, { method: 'DELETE', key });
    assert.equal(answer.status, 202, answer.text);
    const ended = await waitForState(gateway, key, made.id, 'TERMINATED,FAILED');
    assert.equal(ended.observedState, 'TERMINATED');
    assertBooksAreClosed(ended);
  });

  /** Requests that are refused if the inside of a sandbox cannot be reached. */
  const INSIDE: readonly [string, string, object?][] = [
    ['POST', 'commands', { command: ':' }],
    ['POST', 'files', { path: 'a', content: 'b', encoding: 'utf8' }],
    ['PUT', 'files/content?path=a'],
    ['GET', 'files?path=a'],
    ['GET', 'files/content?path=a'],
    ['GET', 'files/list'],
    ['DELETE', 'files?path=a'],
    ['GET', 'ports/8000'],
  ];

  async function assertNotInside(key: string, id: string, status: number, code: string, all = INSIDE): Promise<void> {
    for (const [method, path, body] of all) {
      const answer = await gateway.call(`/v1/sandboxes/${id}/${path}`, { method, key, body });
      assertRefused(answer, status, code, `${method} ${path}`);
    }
  }

  it('refuses actions that its offering does not support, commands while it is suspended, and all changes after its end', async () => {
    const { key } = await gateway.newCustomer('10');
    const bare = await running(gateway, key, 'bare', { selection: { offeringId: offeringId('bare') } });
    await assertNotInside(key, bare.id, 409, 'NOT_SUPPORTED');
    assertRefused(await ask(key, bare.id, 'suspend'), 409, 'NOT_SUPPORTED');
    const { id } = await running(gateway, key, 'asleep');
    await ask(key, id, 'suspend');
    await waitForState(gateway, key, id, 'SUSPENDED');
    const offered = INSIDE.filter(([, path]) => !path.startsWith('ports'));
    await assertNotInside(key, id, 409, 'SANDBOX_NOT_RUNNING', offered);
    for (const each of [bare.id, id]) assertBooksAreClosed(await terminate(gateway, key, each));
    await assertNotInside(key, id, 410, 'SANDBOX_FINAL');
    for (const verb of ['suspend', 'resume']) assertRefused(await ask(key, id, verb), 410, 'SANDBOX_FINAL', verb);
    assert.equal((await ask(key, id, 'terminate')).json.noop, true);
  });

  it('keeps nothing of an upload whose client disconnects in the middle', async () => {
    const { key } = await gateway.newCustomer('10');
    const { id } = await running(gateway, key, 'half');
    const upload = request(`${gateway.url}/v1/sandboxes/${id}/files/content?path=half`, {
      method: 'PUT',
      headers: { 'x-api-key': key, 'content-length': 1_000_000 },
    });
    upload.on('error', () => undefined);
    await new Promise((sent) => upload.write(Buffer.alloc(500_000), sent));
    upload.destroy();
    const missing = await gateway.call(`/v1/sandboxes/${id}/files?path=half`, { method: 'GET', key });
    assertRefused(missing, 404, 'FILE_NOT_FOUND');
    const ended = await terminate(gateway, key, id);
    assertBooksAreClosed(ended);
    const left = ended.operations.filter(({ status }: { status: string }) => status === 'RUNNING');
    assert.deepEqual(left, []);
  });

  it('appears in lists, in its history and in the audit log', async () => {
    const { key } = await gateway.newCustomer('10');
    const one = await running(gateway, key, 'blue', { metadata: { colour: 'blue', deep: { a: 1 } } });
    const other = await running(gateway, key, 'green', { metadata: { colour: 'green' } });
    const ended = await terminate(gateway, key, other.id);
    const ids = (list: { items: { id: string }[] }) => list.items.map(({ id }) => id);

    assert.deepEqual(ids(await get(key, '/v1/sandboxes')), [one.id]);
    assert.deepEqual(ids(await get(key, '/v1/sandboxes?includeFinal=true')), [other.id, one.id]);
    assert.deepEqual(ids(await get(key, '/v1/sandboxes?includeFinal=true&metadata.colour=blue')), [one.id]);
    assert.deepEqual(ids(await get(key, `/v1/sandboxes?state=TERMINATED&offeringId=${SMALL_ID}`)), [other.id]);
    const first = await get(key, '/v1/sandboxes?includeFinal=true&limit=1');
    assert.equal(first.total, 2);
    const rest = await get(key, `/v1/sandboxes?includeFinal=true&limit=1&cursor=${first.nextCursor}`);
    assert.deepEqual([...ids(first), ...ids(rest)], [other.id, one.id]);

    const history = await get(key, '/v1/sandbox-history?state=HISTORY&search=gre');
    assert.deepEqual(ids(history), [other.id]);
    assert.equal(history.stateCounts.TERMINATED, 1);
    const all = await get(key, '/v1/sandbox-history?pageSize=1&page=2');
    assert.deepEqual(ids(all), [one.id]);
    assert.deepEqual([all.total, all.stateCounts.ACTIVE, all.stateCounts.HISTORY], [2, 1, 1]);

    for (const [kind, field] of [
      ['operations', 'operations'],
      ['events', 'events'],
      ['usageSegments', 'usageSegments'],
      ['billingPeriods', 'billingPeriods'],
    ] as const) {
      const audit = await get(key, `/v1/sandboxes/${other.id}/audit?kind=${kind}`);
      assert.deepEqual(audit.items, ended[field], kind);
      assert.equal(audit.total, ended.auditCounts[kind]);
      const past = await get(key, `/v1/sandboxes/${other.id}/audit?kind=${kind}&page=9`);
      assert.deepEqual([past.items, past.total], [[], audit.total]);
    }
    assert.equal((await gateway.call('/v1/sandboxes?colour=blue', { method: 'GET', key })).status, 400);

    const listed = (await gateway.admin('GET', '/admin/v1/sandboxes')).json.items;
    assert.ok(listed.some(({ id }: { id: string }) => id === one.id));
    assert.deepEqual((await gateway.admin('GET', '/admin/v1/sandboxes/orphans')).json.items, []);
    await terminate(gateway, key, one.id);
  });
});
