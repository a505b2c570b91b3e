import assert from 'node:assert/strict';
import { buildCatalog } from '../../core/catalog/catalog';
import { openEgress } from '../../core/wire/egress';
import messages from '../../plugins/upstreams/messages';
import { sampleModel, sampleUpstream } from '../support/catalog-samples';
import { runTollgate } from '../support/command-line';
import { openDesk, type TestDesk } from '../support/desk';
import { messagesAnswer, respond, startUpstream, type TestUpstream } from '../support/upstream';

describe('tollgate upstreams', function () {
  this.timeout(30_000);
  let desk: TestDesk;
  let upstream: TestUpstream;
  const egress = openEgress();

  before(async () => {
    upstream = await startUpstream();
    const place = { url: new URL(upstream.url), adapters: [messages], allowPrivate: true };
    const catalog = buildCatalog([sampleUpstream('acme', [sampleModel('small'), sampleModel('large')], place)]);
    desk = await openDesk('Postgres', { catalog, egress });
  });
  after(async () => {
    await desk.close();
    await egress.close();
    await upstream.stop();
  });

  function tollgate(...args: string[]) {
    return runTollgate(['upstreams', ...args], { TOLLGATE_URL: desk.adminUrl, TOLLGATE_TOKEN: 'any' });
  }

  it('lists, ejects and restores', async () => {
    assert.match(
      (await tollgate('list')).out,
      /^acme +messages +standard +available +- +- +- +0\/0 +2 +1 \/ 5 +1 +-$/m,
    );
    assert.match((await tollgate('eject', 'acme', '--reason', 'maintenance')).out, /^state +taken-out$/m);
    assert.match((await tollgate('list')).out, /taken-out.*maintenance$/m);
    assert.match((await tollgate('restore', 'acme')).out, /^state +available$/m);
  });

  it('tests: exit status 0 when it answers, 1 and the reason when it does not, 2 when it is asked wrongly', async () => {
    upstream.next(messagesAnswer());
    const fine = await tollgate('test', 'acme', '--model', 'large');
    assert.equal(fine.status, 0, fine.notes);
    assert.match(fine.out, /^result +answered$/m);
    upstream.next(respond({ status: 402, body: { error: { message: 'out of credit' } } }));
    const failed = await tollgate('test', 'acme');
    assert.equal(failed.status, 1);
    assert.match(failed.out, /out of credit/);
    assert.equal((await tollgate('test')).status, 2);
    assert.equal((await tollgate('test', 'nobody')).status, 1);
  });
});
