import { expect } from 'chai';
import { runTollgate } from '../support/command-line';
import { filesUnder, textOf } from '../support/sources';

const documents = ['README.md', 'CONTRIBUTING.md', ...filesUnder('docs').filter((path) => path.endsWith('.md'))];
const folders = ['core', 'plugins', 'policies'].flatMap((folder) => filesUnder(folder));
const sources = folders.filter((path) => path.endsWith('.ts')).map(textOf);

/** Matches `new Counter({ name: 'tollgate_calls_total'` and `gauge('tollgate_streams_open'`. */
const MADE = /(Counter|Gauge|Histogram|counter|gauge)(?:<\w+>)?\(\s*(?:\{\s*name: )?'(tollgate_[a-z_]+)'/g;
const metrics = sources.flatMap((source) =>
  [...source.matchAll(MADE)].map(([, type = '', name = '']) => ({ type: type.toLowerCase(), name })),
);

describe('the documents', () => {
  it('name only existing metrics, or prefixes of existing metric names', () => {
    const wrong = documents.flatMap((path) =>
      [...textOf(path).matchAll(/\btollgate_[a-z_]+(?!-)\b/g)]
        .filter(([named]) => !metrics.some(({ name }) => name.startsWith(named)))
        .map(([named]) => `${path}: ${named}`),
    );
    expect(wrong).to.deep.equal([]);
  });

  it('name only existing commands of `tollgate`', async () => {
    const verbs = new Map<string, readonly string[]>();
    for (const noun of commandsOf((await runTollgate(['--help'])).out))
      verbs.set(noun, commandsOf((await runTollgate([noun, '--help'])).out));
    const found = documents.flatMap((path) =>
      [...textOf(path).matchAll(/(?:`|npx )tollgate (?:--json )?([a-z]+)(?: ([a-z]+))?/g)].map((match) => ({
        where: `${path}: ${match[0]}`,
        noun: match[1] ?? '',
        verb: match[2],
      })),
    );
    expect(found).to.have.length.above(100);
    const wrong = found.filter(({ noun, verb }) => {
      const known = verbs.get(noun);
      return known === undefined || (known.length > 0 && verb !== undefined && !known.includes(verb));
    });
    expect(wrong.map(({ where }) => where)).to.deep.equal([]);
  });
});

describe('metrics', () => {
  it('have names in base units, and only names of counters end with _total', () => {
    expect(metrics).to.have.length.above(70);
    const isNamed = ({ name, type }: (typeof metrics)[number]) => name.endsWith('_total') === (type === 'counter');
    expect(metrics.filter((each) => !isNamed(each))).to.deep.equal([]);
    const scaled = /_(ms|milliseconds|us|minutes|hours|days|kb|mb|gb|kilobytes|megabytes|cents|percent|e8)(_|$)/;
    expect(metrics.filter(({ name }) => scaled.test(name))).to.deep.equal([]);
  });
});

/** Lists the names under "Commands:" of a help text. */
function commandsOf(help: string): string[] {
  return [...(help.split('Commands:\n')[1] ?? '').matchAll(/^ {2}([a-z]+)/gm)].map(([, name]) => name ?? '');
}
