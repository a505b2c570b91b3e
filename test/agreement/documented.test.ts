import { expect } from 'chai';
import { loadPlugins } from '../../core/serving/load-plugins';
import { publishedGatewaySchema, publishedSystemSchema } from '../../core/serving/published-schema';
import { runTollgate } from '../support/command-line';
import { filesUnder, PROJECT, textOf } from '../support/sources';

const loaded = loadPlugins(PROJECT, {});
const docs = ['README.md', ...filesUnder('docs'), 'gateway.config.yml', 'system.config.yml'].map(textOf).join('\n');

describe('the documents', () => {
  it('name every setting', () => {
    const settings = [publishedGatewaySchema(loaded), publishedSystemSchema(loaded)].flatMap(namesOf);
    expect(settings).to.include.members(['slowBodyTimeout', 'renewBefore']);
    expect(settings.filter((name) => !new RegExp(`\\b${name}\\b`).test(docs))).to.deep.equal([]);
  });

  it('name every verb of the command line under its noun, and no other', async () => {
    const { out } = await runTollgate(['--help']);
    const nouns = commandsOf(out).filter((noun) => noun !== 'help');
    const missing: string[] = [];
    for (const noun of nouns) {
      const row = new RegExp(`^\\| \`${noun}\` +\\| (.+?) +\\|$`, 'm').exec(textOf('docs/operating.md'))?.[1];
      if (row === undefined) missing.push(noun);
      const verbs = commandsOf((await runTollgate([noun, '--help'])).out).filter((verb) => verb !== 'help');
      const told = [...(row ?? '').matchAll(/`([a-z]+)`/g)].map(([, verb]) => verb);
      if (verbs.length > 0) expect(told, noun).to.have.members(verbs);
    }
    expect(missing).to.deep.equal([]);
  });
});

describe('the table of metrics', () => {
  const folders = ['core', 'plugins', 'policies'].flatMap((folder) => filesUnder(folder));
  const sources = folders.filter((path) => path.endsWith('.ts')).map(textOf);
  const naming = /(?:name: |gauge\(\s*)'(tollgate_[a-z_]+)'/g;
  const made = sources.flatMap((source) => [...source.matchAll(naming)].map(([, name]) => name));
  const row = /^\| `(tollgate_[a-z_]+)` +\| (counter|gauge|histogram) /gm;
  const rows = [...textOf('docs/operating.md').matchAll(row)].map(([, name = '', type]) => ({ name, type }));

  it('has each metric once, and no other', () => {
    expect(made.length).to.be.above(70);
    expect(rows.map(({ name }) => name)).to.have.members(made);
  });

  it('has base units only, and _total at the end of counters', () => {
    const isNamed = ({ name, type }: (typeof rows)[number]) => name.endsWith('_total') === (type === 'counter');
    expect(rows.filter((each) => !isNamed(each))).to.deep.equal([]);
    const scaled = /_(ms|milliseconds|us|minutes|hours|days|kb|mb|gb|kilobytes|megabytes|cents|percent|e8)(_|$)/;
    expect(rows.filter(({ name }) => scaled.test(name))).to.deep.equal([]);
  });
});

/** Lists the names under "Commands:" of a help text. */
function commandsOf(help: string): string[] {
  return [...(help.split('Commands:\n')[1] ?? '').matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name ?? '');
}

/** Lists the names of all properties, in nested schemas too. */
function namesOf(schema: unknown): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties = {}, ...rest } = schema as { readonly properties?: object };
  return [
    ...Object.keys(properties),
    ...[...Object.values(properties), ...Object.values(rest)].flatMap((each) => namesOf(each)),
  ];
}
