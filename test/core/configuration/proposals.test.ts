// biome-ignore-all lint/suspicious/noTemplateCurlyInString: so the variables of a YAML file are written
import { expect } from 'chai';
import type { Configuration } from '../../../core/configuration/configuration';
import { configurationReader } from '../../../core/configuration/configuration';
import { withRows } from '../../../core/configuration/proposals/apply-rows';
import { LIST_FORMATS, type ListFormat, readPublicList } from '../../../core/configuration/proposals/list';
import { type ProposalRow, propose } from '../../../core/configuration/proposals/rows';
import { loadPlugins } from '../../../core/serving/load-plugins';
import { temporaryFolder } from '../../support/configuration-folder';
import { textOf } from '../../support/sources';

const FILES: Readonly<Record<ListFormat, string>> = { 'models.dev': 'models-dev.json', litellm: 'litellm.json' };

const listText = (format: ListFormat) => textOf(`test/fixtures/catalogue/${FILES[format]}`);

async function read(text: string, format?: ListFormat) {
  const list = await readPublicList(Buffer.from(text), format);
  if (list === undefined) throw new Error('it has no known format');
  return list;
}

type Models = Readonly<Record<string, { readonly from?: string; readonly price?: object }>>;

/** Returns a configuration whose upstreams have these models, as far as proposals read it. */
function configured(upstreams: Readonly<Record<string, Models>>): Pick<Configuration, 'gateway'> {
  const serviceEndpoints = Object.fromEntries(
    Object.entries(upstreams).map(([name, models]) => [name, { url: `https://${name}.example`, models }]),
  );
  return { gateway: { serviceEndpoints } } as unknown as Configuration;
}

/** Returns the rows of a list against the models of one upstream, without their ids, names, sources and days. */
async function rowsOf(format: ListFormat, upstream: string, model: string, price: object) {
  const configuration = configured({ [upstream]: { [model]: { price: { source: format, ...price } } } });
  const { rows } = propose(configuration, await read(listText(format)), '2026-11-29');
  return rows.map(({ meter, old, new: next, guard }) => [meter, old, next, guard]);
}

for (const format of LIST_FORMATS) {
  describe(`a proposal from a list of ${format}`, () => {
    const rows = (upstream: string, model: string, price: object) => rowsOf(format, upstream, model, price);

    it('has a row for each priced meter that differs, in USD per million tokens, in the order of meters', async () => {
      const price = { cacheRead: 0.3, input: 3, output: 12.5, cacheWrite: '3.75' };
      expect(await rows('acme', 'acme-large', price)).to.deep.equal([
        ['input', '3.00000000', '2.50000000', null],
        ['cacheWrite', '3.75000000', '3.12500000', null],
        ['cacheRead', '0.30000000', '0.25000000', null],
      ]);
    });

    it('takes the provider with the name of the upstream if several have the model, and none if no name fits', async () => {
      const price = { input: 3, output: 12.5 };
      expect((await rows('second', 'acme-large', price))[0]?.[2]).to.equal('2.75000000');
      expect(await rows('other', 'acme-large', price)).to.deep.equal([]);
    });

    it('finds a model by its normalized name, and leaves out one whose entries contradict each other', async () => {
      expect(await rows('acme', 'acme-name-2', { input: 4, output: 15 })).to.deep.equal([
        ['input', '4.00000000', '3.00000000', null],
      ]);
      expect(await rows('second', 'second-twins', { input: 2, output: 4 })).to.deep.equal([]);
      expect(await rows('second', 'second-twins-20260601', { input: 2, output: 6 })).to.deep.equal([
        ['input', '2.00000000', '3.00000000', null],
      ]);
    });

    it('reads the plain price of a model whose list has another one above a number of tokens', async () => {
      expect(
        await rows('acme', 'acme-tiers', { input: 1, output: 10, above: { tokens: 1, input: 9, output: 9 } }),
      ).to.deep.equal([['input', '1.00000000', '1.25000000', null]]);
    });

    it('stops a meter that the list does not name, prices of zero, and models without prices', async () => {
      expect(await rows('acme', 'acme-bare', { input: 1, output: 4, cacheRead: 0.1 })).to.deep.equal([
        ['cacheRead', '0.10000000', null, 'vanished'],
      ]);
      expect(await rows('acme', 'acme-free', { input: 1, output: 4 })).to.deep.equal([
        ['input', '1.00000000', '0.00000000', 'zero'],
        ['output', '4.00000000', '0.00000000', 'zero'],
      ]);
      expect(await rows('acme', 'acme-unpriced', { input: 1, output: 4, cacheRead: 0.1 })).to.deep.equal([
        ['input', '1.00000000', null, 'unpriced'],
        ['output', '4.00000000', null, 'unpriced'],
        ['cacheRead', '0.10000000', null, 'unpriced'],
      ]);
      expect(await rows('third', 'third-embed', { input: 0.02, output: 0 })).to.deep.equal([]);
    });

    it('stops values that are no price: text, negative and endless numbers, and more than 8 decimals', async () => {
      const ofOdd = await rows('acme', 'acme-odd', { input: 1, output: 1 });
      expect(ofOdd.map(([meter, , next, guard]) => [meter, next, guard])).to.deep.equal([
        ['input', null, 'number'],
        ['output', null, 'number'],
      ]);
      expect((await rows('third', 'third-long', { input: 0.15, output: 0.25 }))[0]).to.include('number');
      const [huge] = await rows('third', 'third-huge', { input: 0.15, output: 0.25 });
      expect(huge).to.include(format === 'litellm' ? 'number' : 'factor');
      expect(await rows('second', 'second-fine', { input: 0.1234567, output: 0.11 })).to.deep.equal([
        ['input', '0.12345670', '0.12345678', null],
      ]);
    });

    it('stops a change beyond a factor of two, as of prices per thousand tokens, and lets exactly two and a half pass', async () => {
      expect((await rows('acme', 'acme-thousand', { input: 3, output: 15 })).map((row) => row[3])).to.deep.equal([
        'factor',
        'factor',
      ]);
      expect((await rows('acme', 'acme-edge', { input: 1, output: 1 })).map((row) => row[3])).to.deep.equal([
        null,
        null,
      ]);
      expect(
        (await rows('acme', 'acme-edge', { input: 0.99999999, output: '1.00000001' })).map((row) => row[3]),
      ).to.deep.equal(['factor', 'factor']);
    });

    it("stops every row of a vendor's own price and of one written by hand, before all other guards", async () => {
      const list = JSON.parse(listText(format));
      const made = { ...list };
      if (format === 'litellm') made['claude-opus-5-5'] = { litellm_provider: 'anthropic' };
      else made.anthropic = { id: 'anthropic', models: { 'claude-opus-5-5': {} } };
      const { rows: found } = propose(
        configured({
          acme: { 'acme-free': { price: { input: 1, output: 0 } } },
          anthropic: { 'claude-opus-5-5': { from: 'anthropic', price: { input: 4, output: 20 } } },
        }),
        await read(JSON.stringify(made)),
        '2026-11-29',
      );
      expect(found.map(({ id, model, guard, state, source }) => [id, model, guard, state, source])).to.deep.equal([
        ['1', 'acme-free', 'hand', 'stopped', format],
        ['2', 'claude-opus-5-5', 'vendor', 'stopped', format],
        ['3', 'claude-opus-5-5', 'vendor', 'stopped', format],
      ]);
    });

    it('names models that the list no longer has and whose price came from it', async () => {
      const price = { input: 1, output: 1 };
      const models = {
        old: { price: { ...price, source: format } },
        other: { price: { ...price, source: 'an invoice' } },
        hand: { price },
      };
      const { rows: found, gone } = propose(configured({ acme: models }), await read(listText(format)), '2026-11-29');
      expect([found, gone]).to.deep.equal([[], [{ upstream: 'acme', model: 'old' }]]);
    });

    it('recognises the format of a file, and reads it as no other', async () => {
      expect((await read(listText(format))).format).to.equal(format);
      const [other] = LIST_FORMATS.filter((each) => each !== format);
      expect(await readPublicList(Buffer.from(listText(format)), other)).to.equal(undefined);
    });
  });
}

describe('a list of prices', () => {
  it('is refused if it is not JSON, has no known format, or is nested too deeply', async () => {
    for (const text of ['', '{"a": NaN}', `${'['.repeat(300)}${']'.repeat(300)}`]) {
      const error: unknown = await readPublicList(Buffer.from(text)).then(
        () => undefined,
        (reason: unknown) => reason,
      );
      expect(error, text.slice(0, 20)).to.have.property('name', 'JsonError');
    }
    for (const text of [
      '{}',
      '[]',
      '1',
      '{"a":1}',
      '{"acme":{"models":3}}',
      '{"acme":{"models":[]}}',
      '{"__proto__":{}}',
    ])
      expect(await readPublicList(Buffer.from(text)), text).to.equal(undefined);
  });

  it('of 2 MB is read in steps, between which other work runs', async () => {
    const one = ',"m%":{"litellm_provider":"acme","input_cost_per_token":1e-06}';
    const entries = Array.from({ length: (2 * 1024 * 1024) / one.length }, (_, at) => one.replace('%', String(at)));
    let turns = 0;
    const counting = setInterval(() => (turns += 1), 1);
    const list = await read(`{${entries.join('').slice(1)}}`);
    clearInterval(counting);
    expect(list.models.size).to.equal(entries.length);
    expect(turns).to.be.above(10);
  });
});

describe('accepted rows', () => {
  let readHere: ReturnType<typeof configurationReader> | undefined;
  const ROW = {
    id: '1',
    upstream: 'acme',
    model: 'one',
    meter: 'input',
    source: 'litellm',
    date: '2026-11-29',
  } as const;
  const row = (more: Partial<ProposalRow>): ProposalRow => ({
    ...{ ...ROW, old: '3.00000000', new: '2.50000000', state: 'accepted', guard: null },
    ...more,
  });

  function applied(models: string, rows: readonly ProposalRow[]) {
    const shipped = textOf('gateway.config.yml');
    const start = shipped.indexOf('\nserviceEndpoints:');
    const end = shipped.indexOf('\n\n', shipped.indexOf('\npolicies:') === -1 ? start : start + 1);
    const endpoint = `\nserviceEndpoints:\n  acme:\n    url: https://acme.example\n    adapter: chat\n    credential: { none: true }\n    models:\n${models}`;
    const text = shipped.slice(0, start) + endpoint + shipped.slice(end);
    const folder = temporaryFolder({ 'gateway.config.yml': text, 'system.config.yml': textOf('system.config.yml') });
    readHere ??= configurationReader(loadPlugins(folder, {}));
    const reader = readHere;
    const check = (given?: string) => reader(folder, {}, given);
    const before = check();
    const next = withRows(before, rows, check);
    return {
      before,
      next,
      prices: Object.fromEntries(
        Object.entries(next.gateway.serviceEndpoints['acme']?.models ?? {}).map(([name, { price }]) => [name, price]),
      ),
    };
  }

  it('change these prices with their source and day, and nothing else, not even comments', () => {
    const models = [
      '      # the large one',
      '      one: { context: 1000, maxOutput: 100, price: { input: 3, output: 15 } } # ours',
      '      two: { context: 1000, maxOutput: 100, price: { input: 3, output: 15 } }',
    ].join('\n');
    const { before, next, prices } = applied(models, [row({}), row({ meter: 'output', new: '10.00000001' })]);
    expect(prices).to.deep.equal({
      one: { input: 2.5, output: 10.00000001, source: 'litellm', date: '2026-11-29' },
      two: { input: 3, output: 15 },
    });
    const lines = (text: string, other: string) => text.split('\n').filter((line) => !other.includes(line));
    expect(lines(next.text, before.text)).to.deep.equal([
      '      one: { context: 1000, maxOutput: 100, price: { input: 2.5, output: 10.00000001, source: litellm, date: 2026-11-29 } } # ours',
    ]);
    expect(lines(before.text, next.text)).to.have.length(1);
  });

  it('change a price in several lines, and one that the list has changed before', () => {
    const models = [
      '      one:',
      '        context: 1000',
      '        maxOutput: 100',
      '        price:',
      '          input: 3 # so far',
      '          output: ${OUTPUT:-15} # too',
      '      two: { context: 1000, maxOutput: 100, price: { input: "3", output: 15, source: models.dev, date: 2026-01-01, } }',
    ].join('\n');
    const { next, prices } = applied(models, [row({ meter: 'output' }), row({ model: 'two', new: '0.00000005' })]);
    const written = { source: 'litellm', date: '2026-11-29' };
    expect(prices).to.deep.equal({
      one: { input: 3, output: 2.5, ...written },
      two: { input: 5e-8, output: 15, ...written },
    });
    expect(next.text)
      .to.contain('input: 3 # so far\n          output: 2.5 # too\n')
      .and.to.contain('input: 0.00000005');
  });

  it('leave the price of another model that shares it, or all its settings, by an anchor', () => {
    const shared = [
      [
        '      one: { context: 1000, maxOutput: 100, price: &shared { input: 3, output: 15 } }',
        '      two: { context: 1000, maxOutput: 100, price: *shared }',
      ],
      ['      one: &shared { context: 1000, maxOutput: 100, price: { input: 3, output: 15 } }', '      two: *shared'],
    ];
    for (const [lines, model] of shared.flatMap((each) => [[each, 'one'] as const, [each, 'two'] as const])) {
      const { prices } = applied(lines.join('\n'), [row({ model })]);
      expect(prices[model]).to.include({ input: 2.5, output: 15, source: 'litellm' });
      expect(prices[model === 'one' ? 'two' : 'one']).to.deep.equal({ input: 3, output: 15 });
    }
  });
});
