import { strict as assert } from 'node:assert';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { asDocumented } from '../support/documents';
import { type Answered, startGateway, type TestGateway } from '../support/gateway';
import {
  assertBooksAreClosed,
  assertRefused,
  createSandbox,
  creation,
  SANDBOX_GATEWAY,
  SMALL,
  SMALL_ID,
  terminate,
  waitForState,
} from '../support/sandboxes';

const FIXED = { ...SMALL, suspension: 'none', resumeOnAccess: false, hourlyUsd: { RUNNING: 7.2 }, region: 'far' };

describe('The creation of a sandbox', function () {
  this.timeout(90_000);
  let gateway: TestGateway;
  before(async () => {
    gateway = await asDocumented(
      await startGateway({
        ...SANDBOX_GATEWAY,
        configure: (config) => {
          config['offerings'] = {
            small: SMALL,
            fixed: FIXED,
            closed: { ...SMALL, enabled: false },
            lost: { ...SMALL, supplier: 'nobody' },
          };
        },
      }),
    );
  });
  after(async () => {
    await gateway.stop();
  });

  const post = (key: string, body: unknown): Promise<Answered> => gateway.call('/v1/sandboxes', { key, body });

  async function offeringIds(key: string): Promise<Record<string, string>> {
    const { json } = await gateway.call('/v1/offerings', { method: 'GET', key });
    return Object.fromEntries(json.map(({ name, id }: { name: string; id: string }) => [name, id]));
  }

  async function countSandboxes(key: string): Promise<number> {
    return (await gateway.call('/v1/sandboxes?includeFinal=true', { method: 'GET', key })).json.total;
  }

  /** Returns the names of the supplier's instances. */
  const instances = () => readdir(join(gateway.dataFolder, 'suppliers', 'local', 'instances'));

  describe('is refused', () => {
    let key: string;
    before(async () => {
      key = (await gateway.newCustomer('5')).key;
    });

    const selection = { offeringId: SMALL_ID };
    const shapes: readonly [string, string, object][] = [
      ['no selection', 'SELECTION_INVALID', { selection: undefined }],
      ['two selections', 'SELECTION_INVALID', { selection: { ...selection, requirements: {} } }],
      ['an unknown member as selection', 'SELECTION_INVALID', { selection: { name: 'small' } }],
      [
        'a price without requirements',
        'SELECTION_INVALID',
        { selection: { ...selection, maxEstimatedHourlyUsd: '1' } },
      ],
      ['an unknown capability', 'REQUIREMENTS_INVALID', { selection: { requirements: { capabilities: ['fly'] } } }],
      ['an empty range', 'REQUIREMENTS_INVALID', { selection: { requirements: { cpu: { min: 4, max: 2 } } } }],
      ['no idempotency key', 'IDEMPOTENCY_KEY_INVALID', { idempotencyKey: undefined }],
      ['a long idempotency key', 'IDEMPOTENCY_KEY_INVALID', { idempotencyKey: 'x'.repeat(161) }],
      ['a secret in the metadata', 'METADATA_INVALID', { metadata: { apiKey: 'abc' } }],
      ['a key in the metadata', 'METADATA_INVALID', { metadata: { note: `sk-svc-${'a'.repeat(46)}` } }],
      ['a secret in a list of the metadata', 'METADATA_INVALID', { metadata: { deep: { secretKeys: ['abc'] } } }],
      ['a key as a name in the metadata', 'METADATA_INVALID', { metadata: { [`sk-svc-${'a'.repeat(46)}`]: 1 } }],
      ['metadata that is not an object', 'METADATA_INVALID', { metadata: ['a'] }],
      ['an unknown field', 'INVALID_FIELD', { balance: '1' }],
      ['an unknown policy', 'INVALID_FIELD', { policy: { free: true } }],
      ['an unknown quote', 'QUOTE_INVALID', { selection: { quoteId: '019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d' } }],
    ];
    for (const [what, code, body] of shapes) {
      it(`for ${what} with 400 ${code}`, async () =>
        assertRefused(await post(key, { selection, idempotencyKey: 'a', ...body }), 400, code));
    }

    it('with 400 POLICY_UNSUPPORTED for a policy that the offering does not support', async () => {
      const { fixed } = await offeringIds(key);
      const fixedBody = (policy: object) => ({ selection: { offeringId: fixed }, idempotencyKey: 'a', policy });
      assertRefused(await post(key, fixedBody({ resumeOnAccess: true })), 400, 'POLICY_UNSUPPORTED');
      assertRefused(await post(key, fixedBody({ onFundsExhausted: 'suspend' })), 400, 'POLICY_UNSUPPORTED');
    });

    it('with 404 for a disabled or unknown offering, or if no offering meets the requirements', async () => {
      const { closed } = await offeringIds(key);
      const select = (selected: object) => ({ selection: selected, idempotencyKey: 'a' });
      assertRefused(await post(key, select({ offeringId: closed })), 404, 'OFFERING_NOT_FOUND');
      const unknown = '019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d';
      assertRefused(await post(key, select({ offeringId: unknown })), 404, 'OFFERING_NOT_FOUND');
      assertRefused(await post(key, select({ requirements: { cpu: { min: 64 } } })), 404, 'NO_MATCHING_OFFERING');
      const ceiling = { requirements: {}, maxEstimatedHourlyUsd: '3.59' };
      assertRefused(await post(key, select(ceiling)), 404, 'NO_MATCHING_OFFERING');
    });

    it('with 409 SUPPLIER_UNAVAILABLE for an offering whose supplier is missing', async () => {
      const { lost } = await offeringIds(key);
      const answer = await post(key, { selection: { offeringId: lost }, idempotencyKey: 'a' });
      assertRefused(answer, 409, 'SUPPLIER_UNAVAILABLE');
      assert.ok(Number(answer.headers['retry-after']) > 0);
    });

    it('with 401 without an API key, and a refused creation does not use up its idempotency key', async () => {
      assert.equal((await gateway.call('/v1/sandboxes', { body: creation('a') })).status, 401);
      const made = await createSandbox(gateway, key, creation('a'));
      assertBooksAreClosed(await terminate(gateway, key, made.id));
    });
  });

  it('gets 402 if the balance does not cover the first ten minutes and the termination, and succeeds after a credit', async () => {
    const { key, accountId } = await gateway.newCustomer('0.65999999');
    const answer = await post(key, creation('poor'));
    assertRefused(answer, 402, 'INSUFFICIENT_BALANCE');
    assert.equal(answer.headers['x-svc-source'], 'platform');
    assert.deepEqual(answer.json.error.details, { requiredUsd: '0.66000000', availableUsd: '0.65999999' });
    assert.equal(await countSandboxes(key), 0);
    assert.equal((await gateway.balance(key)).heldUsd, '0.00000000');
    const credit = { amountUsd: '0.00000001', idempotencyKey: 'top-up' };
    await gateway.admin('POST', `/admin/v1/accounts/${accountId}/credits`, credit);
    const made = await createSandbox(gateway, key, creation('poor'));
    assertBooksAreClosed(await terminate(gateway, key, made.id));
  });

  it('is refused with 402 KEY_LIMIT_EXCEEDED if the money limit of the API key does not cover its hold', async () => {
    const { key } = await gateway.newCustomer('5', { balanceLimit: '0.50' });
    assertRefused(await post(key, creation('limited')), 402, 'KEY_LIMIT_EXCEEDED');
  });

  it('creates one row, one instance and one hold if a client sends it 50 times at once with one idempotency key', async () => {
    const { key } = await gateway.newCustomer('100');
    const before = await instances();
    const answers = await Promise.all(Array.from({ length: 50 }, () => post(key, creation('fifty'))));
    assert.deepEqual(
      [...new Set(answers.map(({ status }) => status))],
      [202],
      answers.find((each) => each.status !== 202)?.text,
    );
    const ids = new Set(answers.map(({ json }) => json.id));
    assert.equal(ids.size, 1);
    const [id] = ids;
    const { billingPeriods } = await waitForState(gateway, key, id, 'RUNNING');
    assert.equal(billingPeriods.length, 1);
    assert.equal(await countSandboxes(key), 1);
    assert.equal((await instances()).length, before.length + 1);
    assert.equal((await gateway.balance(key)).heldUsd, '0.66000000');
    assertBooksAreClosed(await terminate(gateway, key, id));
  });

  it('returns the existing sandbox to a repeated request, and 409 if the repetition has another selection or policy', async () => {
    const { key } = await gateway.newCustomer('10');
    const quote = await gateway.call('/v1/quotes', { key, body: { offeringId: SMALL_ID } });
    // The hold covers ten minutes in advance and one for the end.
    assert.equal(quote.json.initialReservationUsd, '0.66000000');
    assert.equal(quote.json.estimatedHourlyUsd, '3.60000000');
    const { quoteId } = quote.json;
    const body = creation('once', { selection: { quoteId }, metadata: { try: 1 } });
    const made = await createSandbox(gateway, key, body);
    const again = await createSandbox(gateway, key, { ...body, metadata: { try: 2 } });
    assert.equal(again.id, made.id);
    assert.deepEqual(again.metadata, { try: 1 });
    assertRefused(await post(key, creation('once')), 409, 'IDEMPOTENCY_CONFLICT');
    const otherPolicy = { ...body, policy: { maxLifetimeSeconds: 60 } };
    assertRefused(await post(key, otherPolicy), 409, 'IDEMPOTENCY_CONFLICT');
    assertRefused(await post(key, { ...body, idempotencyKey: 'twice' }), 409, 'QUOTE_USED');
    await terminate(gateway, key, made.id);
    assert.equal((await createSandbox(gateway, key, body)).observedState, 'TERMINATED');
  });

  it('by requirements selects the cheapest offering that meets them', async () => {
    const { key } = await gateway.newCustomer('10');
    const { fixed } = await offeringIds(key);
    const far = await gateway.call('/v1/quotes', { key, body: { requirements: { regions: ['far'] } } });
    assert.equal(far.json.offeringId, fixed);
    const any = await gateway.call('/v1/quotes', { key, body: { requirements: {}, maxEstimatedHourlyUsd: '100' } });
    assert.equal(any.json.offeringId, SMALL_ID);
  });

  it('takes tags for its holds, and is refused if they are wrong or lack one that the key requires', async () => {
    const { key, keyId } = await gateway.newCustomer('10');
    const create = (tags?: string) => {
      const headers: Record<string, string> = tags === undefined ? {} : { 'x-svc-tags': tags };
      return gateway.call('/v1/sandboxes', { key, headers, body: creation('tags') });
    };
    const wrong = await create('Customer=1');
    assert.deepEqual([wrong.status, wrong.json.error.param], [400, 'x-svc-tags']);
    await gateway.admin('PATCH', `/admin/v1/keys/${keyId}`, { requiredTags: ['customer'] });
    const untagged = await create('project=a');
    assert.equal(untagged.status, 400);
    assert.match(untagged.json.error.message, /x-svc-tags: this key requires the tag customer/);
    assert.equal(await countSandboxes(key), 0);
    const made = await create('customer=4711');
    assert.equal(made.status, 202, made.text);
    await terminate(gateway, key, made.json.id);
  });
});
