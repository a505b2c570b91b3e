import { existsSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { expect } from 'chai';
import { filesUnder, PROJECT, textOf } from '../support/sources';

const INDEX = 'docs/decisions/README.md';
const decisions = filesUnder('docs/decisions').filter((path) => path !== INDEX);
const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  'bench/README.md',
  ...filesUnder('bench/history'),
  'test/fixtures/README.md',
  ...filesUnder('docs').filter((path) => path.endsWith('.md')),
];

/** Lists the links of a document: a file relative to it, and a heading. External addresses are omitted. */
function linksIn(text: string): readonly { readonly file: string; readonly heading: string | undefined }[] {
  return [...withoutCode(text).matchAll(/\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]*))?\)/g)].map(
    ([, file = '', heading]) => ({ file, heading }),
  );
}

function withoutCode(text: string): string {
  return text.replaceAll(/^```[\s\S]*?^```/gm, '').replaceAll(/`[^`\n]*`/g, '');
}

/** Returns the anchors of a document's headings, as GitHub makes them. */
function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,6} (.+)$/gm)];
  return new Set(headings.map(([, heading = '']) => anchorOf(heading)));
}

function anchorOf(heading: string): string {
  return heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
    .replaceAll(' ', '-');
}

/** Returns what is missing at a link's target; undefined if the link works. */
function missing(path: string, { file, heading }: ReturnType<typeof linksIn>[number]): string | undefined {
  const target = file === '' ? path : posix.join(dirname(path), file);
  if (!existsSync(join(PROJECT, target))) return `${path}: there is no ${target}`;
  if (heading === undefined || !target.endsWith('.md') || anchorsOf(textOf(target)).has(heading)) return undefined;
  return `${path}: ${target} has no heading #${heading}`;
}

/** Files that a document names in code style, such as `core/base/errors.ts`. */
const NAMED_FILE =
  /`((?:core|policies|plugins|cli|exports|conformance|demo|bench|test|docs|schemas)\/[\w./-]+\.(?:[cm]?tsx?|lua|json|md|ya?ml))`/g;

function namedFiles(text: string): readonly string[] {
  return [...text.replaceAll(/^```[\s\S]*?^```/gm, '').matchAll(NAMED_FILE)].map(([, file = '']) => file);
}

function wordsIn(text: string): number {
  return text.replaceAll(/\]\([^)]*\)/g, ']').match(/\S*[\p{L}\p{N}]\S*/gu)?.length ?? 0;
}

describe('documents', () => {
  it('link to files and headings that exist', () => {
    const lost = documents.flatMap((path) => linksIn(textOf(path)).flatMap((link) => missing(path, link) ?? []));
    expect(lost).to.deep.equal([]);
  });

  it('name files of the repository that exist', () => {
    const lost = documents.flatMap((path) =>
      namedFiles(textOf(path))
        .filter((file) => !existsSync(join(PROJECT, file)))
        .map((file) => `${path}: there is no ${file}`),
    );
    expect(lost).to.deep.equal([]);
  });

  it('have examples that import files that exist', () => {
    const lost = documents.flatMap((path) =>
      [...textOf(path).matchAll(/ from '(?:\.\.\/)+((?:core|policies|plugins)\/[^']+)';/g)]
        .map(([, file = '']) => `${file}.ts`)
        .filter((file) => !existsSync(join(PROJECT, file)))
        .map((file) => `${path}: there is no ${file}`),
    );
    expect(lost).to.deep.equal([]);
  });

  it('are all reachable by links from the README', () => {
    const reached = new Set(['README.md']);
    for (const path of reached)
      for (const { file } of path.endsWith('.md') ? linksIn(textOf(path)) : [])
        if (file !== '') reached.add(posix.join(dirname(path), file));
    expect(documents.filter((path) => path.startsWith('docs/') && !reached.has(path))).to.deep.equal([]);
  });

  it('list every decision under its date, oldest first', () => {
    const listed = [...textOf(INDEX).matchAll(/^\| (\d{4}-\d\d-\d\d) +\| \[[^\]]+\]\(([^)]+)\)/gm)];
    expect(listed.map(([, , file]) => `docs/decisions/${file}`)).to.have.members(decisions);
    for (const [, date = '', file = ''] of listed) expect(basename(file).slice(0, 10), file).to.equal(date);
    const dates = listed.map(([, date]) => date);
    expect(dates).to.deep.equal(dates.toSorted());
  });

  it('give a decision at most 150 words', () => {
    const long = decisions
      .map((path) => `${path}: ${wordsIn(textOf(path))}`)
      .filter((line) => Number(line.split(': ')[1]) > 280);
    expect(long).to.deep.equal([]);
  });
});
