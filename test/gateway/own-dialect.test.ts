import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { sseEvent } from '../../demo/dialects/answer';
import { askIn, PATH, PROTOCOLS } from '../support/calls';
import { temporaryFolder } from '../support/configuration-folder';
import { DIALECT } from '../support/dialects';
import type { Configured } from '../support/gateway';
import { builtServer } from '../support/shared';
import { textOf } from '../support/sources';
import { useGateway, useUpstream } from '../support/story';
import { chatAnswer, chatFailure, respond, type Script, stream } from '../support/upstream';

const PAGE = textOf('docs/writing-a-dialect.md');
const ADAPTER = textOf('examples/dialect/index.js');
const CONFIGURATION = [...PAGE.matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text = '']) => parse(text) as Configured);

/** Writes the example's module, in which only the location of `tollgate` is replaced. */
async function writePackage(folder: string): Promise<void> {
  const dist = dirname(await builtServer());
  const { exports } = JSON.parse(textOf('package.json')) as { exports: Readonly<Record<string, { default: string }>> };
  const placed = (text: string) =>
    text.replace(/'tollgate(\/[a-z-]+)'/g, (_, name: string) =>
      JSON.stringify(join(dist, (exports[`.${name}`]?.default ?? '').replace('./dist/', ''))),
    );
  await writeFile(join(folder, 'index.js'), placed(ADAPTER));
}

const COUNTED = { read: 200, again: 80, said: 30 };

function acmeStream(...said: readonly object[]): Script {
  return stream(
    said.map((each) => sseEvent(each)),
    0,
  );
}

/** Runs the adapter of docs/writing-a-dialect.md, because authors copy it. */
describe('The example adapter of docs/writing-a-dialect.md', () => {
  const acme = useUpstream();
  const other = useUpstream();
  let key: string;
  let folder: string;

  const gateway = useGateway(async () => {
    folder = temporaryFolder({});
    await writePackage(folder);
    const [system, configured] = CONFIGURATION as [Configured, Configured];
    const { acme: entry } = configured['serviceEndpoints'];
    const { models } = entry;
    return {
      upstreams: {
        acme: { ...entry, url: acme.url, models, tier: 'official' },
        'acme-again': { ...entry, url: acme.url, models: { both: models['acme-1'] }, tier: 'official' },
        chat: { url: other.url, adapter: 'chat', models: { both: {} } },
      },
      env: { ACME_KEY: 'the-key-of-acme' },
      system: {
        plugins: {
          ...SHIPPED.plugins,
          'example-dialect': { ...system['plugins']['example-dialect'], package: folder },
        },
      },
    };
  });

  before(async () => {
    ({ key } = await gateway.newCustomer('10'));
  });
  beforeEach(() => {
    acme.reset();
    other.reset();
  });

  const SHIPPED = parse(textOf('system.config.yml')) as { readonly plugins: object };

  for (const protocol of PROTOCOLS) {
    const words = [
      { kind: 'words', words: 'Grüß ' },
      { kind: 'words', words: 'Gott' },
    ];

    it(`answers an unstreamed ${protocol} call, and the client pays exactly the price of its usage`, async () => {
      acme.next(respond({ body: { words: 'Grüß Gott', why: 'done', counted: COUNTED } }));
      const answered = await gateway.call(PATH[protocol], { key, body: askIn(protocol, { model: 'acme-1' }) });
      expect(answered.status).to.equal(200);
      expect(answered.text).to.include('Grüß Gott');
      expect(answered.headers).to.include({ 'x-ai-cost': '0.00083400', 'x-routing-translated': 'true' });
      const [asked] = acme.calls;
      expect(asked?.headers).to.include({ 'acme-key': 'the-key-of-acme' });
      expect(asked?.headers).to.not.have.any.keys('authorization', 'x-api-key');
      expect(asked?.path).to.equal('/talk/acme-1');
      expect(asked?.json).to.deep.include({ say: [{ who: 'human', words: 'Hello' }], most: 200, live: false });
    });

    it(`streams to a ${protocol} client, and the client pays exactly the price of its usage`, async () => {
      acme.next(acmeStream(...words, { kind: 'over', why: 'done', counted: COUNTED }));
      const answered = await gateway.call(PATH[protocol], {
        key,
        body: askIn(protocol, { model: 'acme-1', stream: true }),
      });
      expect(DIALECT[protocol].textOf(answered.text)).to.equal('Grüß Gott');
      expect(answered.text).to.match(DIALECT[protocol].end).and.to.include('"cost":0.00083400');
      const record = await gateway.record(key, answered.headers['x-svc-request-id'] ?? '');
      expect(record).to.deep.include({ cost: '0.00083400', billing: 'actual', flags: ['translated'] });
    });

    it(`reports an error with status 200 as a failure to a ${protocol} client`, async () => {
      acme.always(respond({ body: { trouble: 'Too hot.' } }));
      const failed = await gateway.call(PATH[protocol], { key, body: askIn(protocol, { model: 'acme-1' }) });
      expect(failed.status).to.equal(502);
      expect(failed.json.error).to.include({ code: 'ALL_PROVIDERS_FAILED' });
    });
  }

  it('takes part in failover with a built-in adapter, in both directions', async () => {
    const ask = () => gateway.call(PATH.chat, { key, body: askIn('chat', { model: 'both' }) });
    other.next(chatFailure(503));
    acme.next(respond({ body: { words: 'From Acme', why: 'done', counted: COUNTED } }));
    const first = await ask();
    expect(first.json.choices[0].message.content).to.equal('From Acme');
    acme.always(respond({ status: 503, body: { trouble: 'Too hot.' } }));
    other.always(chatAnswer({ text: 'From the other' }));
    const second = await gateway.call(PATH.messages, { key, body: askIn('messages', { model: 'both' }) });
    expect(second.json.content[0].text).to.equal('From the other');
  });
});
