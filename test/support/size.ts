import { execFile } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PROJECT, textOf } from './sources';

/** The folders and files of the product. */
const SOURCES = [
  ...['core', 'policies', 'plugins', 'cli', 'console', 'server.ts'],
  ...['exports', 'conformance', 'demo', 'migrations'],
];
const CODE = /\.[cm]?[jt]sx?$/;
const EXPORT = /^export (?:abstract |async |declare )*(?:class|const|enum|function\*?|interface|let|type) (\w+)/gm;

/** Measures the project by the files that git knows. Each figure has its row in the table of CONTRIBUTING.md. */
export async function measure(): Promise<ReadonlyMap<string, number>> {
  const { stdout } = await promisify(execFile)('git', ['ls-files', '-z'], { cwd: PROJECT, maxBuffer: 16_000_000 });
  const files = stdout.split('\0').filter((file) => file !== '' && existsSync(join(PROJECT, file)));
  const sources = files.filter((file) => SOURCES.some((root) => file === root || file.startsWith(`${root}/`)));
  const tests = files.filter((file) => /^test\/(?!fixtures\/)/.test(file) && CODE.test(file));
  const documents = files.filter((file) => /^(docs\/.*|[A-Z]+)\.md$/.test(file));
  const { dependencies } = JSON.parse(textOf('package.json')) as { dependencies: object };
  const schemas = ['gateway', 'system'].map((name) => JSON.parse(textOf(`schemas/${name}.config.schema.json`)));
  return new Map([
    ['source lines', sum(sources.map(linesOf))],
    ['source files', sources.length],
    ['lines of tests without fixtures', sum(tests.map(linesOf))],
    ['words of documents', sum(documents.map((file) => textOf(file).match(/\S+/g)?.length ?? 0))],
    ['dependencies', Object.keys(dependencies).length],
    ['settings', sum(schemas.map(leavesOf))],
    ['exported names that files share', sharedNames(sources.filter((file) => CODE.test(file)))],
  ]);
}

const sum = (figures: readonly number[]) => figures.reduce((total, figure) => total + figure, 0);

const linesOf = (file: string) => textOf(file).match(/\n/g)?.length ?? 0;

/** Counts the settings of a schema that have no settings below them. */
function leavesOf(schema: Readonly<Record<string, unknown>>): number {
  const { properties = {}, additionalProperties, items, oneOf = [], anyOf = [] } = schema;
  const below = [...Object.values(properties as object), additionalProperties, items, oneOf, anyOf]
    .flat()
    .filter((part) => typeof part === 'object' && part !== null);
  return below.length === 0 ? 1 : sum(below.map(leavesOf));
}

/** Counts the names that more than one file exports. */
function sharedNames(files: readonly string[]): number {
  const seen = new Set<string>();
  const shared = new Set<string>();
  for (const file of files)
    for (const name of new Set(Array.from(textOf(file).matchAll(EXPORT), ([, exported = '']) => exported)))
      (seen.has(name) ? shared : seen).add(name);
  return shared.size;
}

const ROW = /^\| (.+?) +\| +([\d,]+) +\|$/gm;

/** Returns the ceilings of the table in CONTRIBUTING.md, by the names of their rows. */
export function ceilings(): ReadonlyMap<string, number> {
  const [, table = ''] = textOf('CONTRIBUTING.md').split('\n## Size\n');
  return new Map(
    Array.from(table.matchAll(ROW), ([, name = '', figure = '']) => [name, Number(figure.replaceAll(',', ''))]),
  );
}

/** Prints each figure beside its ceiling. With `--lower` it first writes figures below a ceiling into the table. */
async function main(): Promise<void> {
  const measured = [...(await measure())];
  if (process.argv.includes('--lower')) {
    const path = join(PROJECT, 'CONTRIBUTING.md');
    const [before = '', table = ''] = readFileSync(path, 'utf8').split('\n## Size\n');
    const lowered = table.replace(ROW, (row, name: string, ceiling: string) => {
      const next = Math.min(Number(ceiling.replaceAll(',', '')), new Map(measured).get(name) ?? 0);
      return row.replace(ceiling, next.toLocaleString('en').padEnd(ceiling.length));
    });
    writeFileSync(path, `${before}\n## Size\n${lowered}`);
  }
  const most = ceilings();
  for (const [name, figure] of measured)
    process.stdout.write(`${name.padEnd(34)}${show(figure)}  ceiling ${show(most.get(name) ?? 0)}\n`);
}

const show = (figure: number) => figure.toLocaleString('en').padStart(7);

if (require.main === module) void main();
