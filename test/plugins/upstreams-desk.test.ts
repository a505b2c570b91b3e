import assert from 'node:assert/strict';
import { buildCatalog, type Upstream } from '../../core/catalog/catalog';
import { openEgress } from '../../core/wire/egress';
import messages from '../../plugins/upstreams/messages';
import { sampleCredential, sampleModel, sampleUpstream } from '../support/catalog-samples';
import { openDesk, type TestDesk } from '../support/desk';
import { closedPort, messagesAnswer, respond, startUpstream, type TestUpstream } from '../support/upstream';

const CREDENTIAL = 'the-platforms-own-credential';

describe("the operator's upstreams", function () {
  this.timeout(30_000);
  let desk: TestDesk;
  let real: TestUpstream;
  const egress = openEgress();

  before(async () => {
    real = await startUpstream();
    const at = (name: string, url: string, rest: Partial<Upstream> = {}) =>
      sampleUpstream(name, [sampleModel('large'), sampleModel('small')], {
        url: new URL(url),
        adapters: [messages],
        allowPrivate: true,
        credential: sampleCredential(CREDENTIAL),
        ...rest,
      });
    const catalog = buildCatalog([
      at('acme', `${real.url}/base`),
      at('gone', await closedPort()),
      at('off', real.url, { disabled: 'KEY is not set', translate: 'never' }),
    ]);
    desk = await openDesk('Postgres', { catalog, egress });
  });
  after(async () => {
    await desk.close();
    await egress.close();
    await real.stop();
  });
  beforeEach(() => real.reset());

  it('are listed with their state, prices and metrics', async () => {
    const { body } = await desk.admin('GET', '/upstreams');
    assert.deepEqual(
      body.items.map(({ name, state }: { name: string; state: string }) => [name, state]),
      [
        ['acme', 'available'],
        ['gone', 'available'],
        ['off', 'disabled'],
      ],
    );
    const [acme] = body.items;
    assert.equal(acme.successRate, 1);
    assert.equal(acme.firstTokenMs, null);
    assert.equal(acme.models[0].pricePerMillion.input, '1.00000000');
    assert.deepEqual(acme.models[0].protocols, ['messages']);
    assert.deepEqual(acme.models[0].translated, ['responses', 'chat']);
    assert.deepEqual(body.items[2].models[0].translated, []);
    assert.equal(body.items[2].disabledReason, 'KEY is not set');
    assert.equal((await desk.admin('GET', '/upstreams/acme')).body.name, 'acme');
  });

  it('are tested with one small call, in the same way as client calls', async () => {
    real.next(messagesAnswer());
    const { status, body } = await desk.admin('POST', '/upstreams/acme/test', { model: 'small' });
    assert.equal(status, 200);
    assert.deepEqual(
      { ok: body.ok, status: body.status, problem: body.problem },
      { ok: true, status: 200, problem: null },
    );
    const [call] = real.calls;
    assert.equal(call?.path, '/base/v1/messages');
    assert.equal(call?.headers['x-api-key'], CREDENTIAL);
    assert.equal((call?.json as { model: string } | undefined)?.model, 'small');
  });

  it('report what is wrong if a test fails', async () => {
    real.next(respond({ status: 401, body: { error: { message: 'no such key' } } }));
    const refused = (await desk.admin('POST', '/upstreams/acme/test', {})).body;
    assert.deepEqual([refused.ok, refused.status], [false, 401]);
    assert.match(refused.problem, /no such key/);
    real.next(respond({ status: 401, body: { error: { message: `no such key: ${CREDENTIAL}` } } }));
    assert.match((await desk.admin('POST', '/upstreams/acme/test', {})).body.problem, /no such key: \[credential\]/);
    const { items } = (await desk.admin('GET', '/audit?subject=upstream:acme')).body;
    assert.ok(!JSON.stringify(items).includes(CREDENTIAL));
    const gone = (await desk.admin('POST', '/upstreams/gone/test', {})).body;
    assert.deepEqual([gone.ok, gone.status], [false, null]);
    assert.match(gone.problem, /connect_failed/);
  });

  for (const [what, path, sent, status, param] of [
    ['an upstream that is not there', '/upstreams/nobody/test', {}, 404, null],
    ['an upstream that is not there', '/upstreams/nobody/disable', {}, 404, null],
    ['a model it does not have', '/upstreams/acme/test', { model: 'huge' }, 400, 'model'],
    ['a protocol it does not speak', '/upstreams/acme/test', { protocol: 'chat' }, 400, 'protocol'],
    ['a word that is not known', '/upstreams/acme/disable', { until: 'never' }, 400, 'until'],
    ['a disabled one', '/upstreams/off/test', {}, 409, null],
  ] as const) {
    it(`refuse a request that names ${what} (${path})`, async () => {
      const answer = await desk.admin('POST', path, sent);
      assert.equal(answer.status, status);
      assert.equal(answer.body.error.param, param);
      assert.equal(real.calls.length, 0);
    });
  }

  it('are disabled with a reason and enabled again, with an audit row each', async () => {
    const out = (await desk.admin('POST', '/upstreams/acme/disable', { reason: 'maintenance' })).body;
    assert.equal(out.state, 'taken-out');
    assert.equal(out.takenOut.reason, 'maintenance');
    await desk.admin('POST', '/upstreams/acme/disable', { reason: 'again' });
    assert.equal((await desk.admin('GET', '/upstreams/acme')).body.takenOut.reason, 'maintenance');
    assert.equal((await desk.admin('POST', '/upstreams/acme/enable', {})).body.state, 'available');
    const { items } = (await desk.admin('GET', '/audit?subject=upstream:acme')).body;
    assert.deepEqual(
      items.map(({ action }: { action: string }) => action).filter((action: string) => action !== 'upstream.test'),
      ['upstream.enable', 'upstream.disable'],
    );
  });
});
