import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readRecordings, upstreamConformance } from '../../conformance/upstream';
import { buildCatalog } from '../../core/catalog/catalog';
import { openEgress } from '../../core/wire/egress';
import messages from '../../plugins/upstreams/messages';
import { sampleModel, sampleUpstream } from '../support/catalog-samples';
import { runTollgate } from '../support/command-line';
import { temporaryFolder } from '../support/databases';
import { openDesk, type TestDesk } from '../support/desk';
import { messagesAnswer, messagesStream, respond, startUpstream, type TestUpstream } from '../support/upstream';

const ANSWER = {
  id: 'msg_01of_an_account',
  type: 'message',
  role: 'assistant',
  model: 'large',
  content: [{ type: 'text', text: 'OK' }],
  stop_reason: 'end_turn',
  usage: { input_tokens: 12, output_tokens: 2 },
};

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

  it('lists, disables and enables an upstream', async () => {
    assert.match(
      (await tollgate('list')).out,
      /^acme +messages +standard +available +- +- +- +0\/0 +2 +1 \/ 5 +1 +-$/m,
    );
    assert.match((await tollgate('disable', 'acme', '--reason', 'maintenance')).out, /^state +taken-out$/m);
    assert.match((await tollgate('list')).out, /taken-out.*maintenance$/m);
    assert.match((await tollgate('enable', 'acme')).out, /^state +available$/m);
  });

  it('test exits with 0 if the upstream answers, 1 with the reason if it does not, and 2 after a usage error', async () => {
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

  it('record writes answers that pass the conformance suite, without ids and without the credential', async () => {
    const { path, remove } = await temporaryFolder();
    const folder = join(path, 'recordings');
    upstream.next(
      respond({ body: { ...ANSWER, echo: 'we were shown sample-credential' } }),
      messagesStream(),
      respond({ status: 404, body: { type: 'error', error: { type: 'not_found_error', message: 'no such model' } } }),
    );
    const before = upstream.calls.length;
    const { status, notes, out } = await tollgate('record', 'acme', '--model', 'large', '--to', folder);
    assert.equal(status, 0, notes);
    assert.match(out, /answer\.json, stream\.sse, expected\.json/);
    const asked = upstream.calls.slice(before).map(({ json }) => json as { model: string; stream?: boolean });
    assert.deepEqual(
      asked.map(({ model, stream = false }) => [model, stream]),
      [
        ['large', false],
        ['large', true],
        ['there-is-no-such-model', false],
      ],
    );
    const answer = await readFile(join(folder, 'answer.json'), 'utf8');
    assert.doesNotMatch(answer, /msg_01|sample-credential/);
    assert.match(answer, /"id":"recorded-1"/);
    const recordings = readRecordings(folder);
    assert.deepEqual(recordings.failures, [{ ...recordings.failures[0], status: 404, verdict: 'next' }]);
    assert.deepEqual(
      recordings.streams.map(({ name, ends }) => [name, ends]),
      [['stream.sse', 'done']],
    );
    const subject = { adapter: messages, settings: {}, protocol: 'messages', ...recordings } as const;
    for (const { run } of upstreamConformance(subject)) run();
    const again = await tollgate('record', 'acme', '--to', folder);
    assert.equal(again.status, 1);
    await remove();
  });

  it('record writes nothing and exits with 1 if the upstream returns an error', async () => {
    upstream.next(respond({ status: 401, body: { error: { message: 'who are you' } } }), messagesStream());
    const { status, notes } = await tollgate('record', 'acme', '--to', 'nowhere');
    assert.equal(status, 1);
    assert.match(notes, /"acme" cannot be recorded: the upstream answered 401: .*who are you/);
  });
});
