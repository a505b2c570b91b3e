import { expect } from 'chai';
import { filesUnder, textOf } from '../support/sources';

/** Written by `npm run agents -- --write`, which quotes what programs print, and the page with examples of what not to write. */
const EXCEPT = ['docs/clients.md', 'docs/writing.md'];
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  'CHANGELOG.md',
  ...filesUnder('docs').filter((path) => path.endsWith('.md') && !EXCEPT.includes(path)),
];

const SUBJECTS = /\b(?:whoever|nobody|somebody)\b/i;
const BEGINNINGS = /^(?:Of|By|So|Told|Said|Who)\b(?!.*\?$)/;

/** Sentences, and cells of tables, without code, quoted titles of tests and the targets of links. */
function sentencesOf(text: string): readonly string[] {
  const plain = text
    .replaceAll(/^```[\s\S]*?^```/gm, '')
    .replaceAll(/^#.*$/gm, '')
    .replaceAll(/`[^`\n]*`|“[^”]*”/g, 'X')
    .replaceAll(/\]\([^)]*\)/g, ']');
  return plain
    .split(/\n\s*\n|\n(?=\s*(?:[-|]|\d+\.) ?)|\|/)
    .flatMap((part) => part.replaceAll(/\s+/g, ' ').split(/(?<=[.!?:;]\**) (?=[*[(A-Z"])/))
    .map((sentence) => sentence.replace(/^[\s\d.*[("-]+/, '').trim());
}

function wrongIn(text: string): readonly string[] {
  return sentencesOf(text).filter((sentence) => SUBJECTS.test(sentence) || BEGINNINGS.test(sentence));
}

describe('the documents name the actor (docs/writing.md, rule 1)', () => {
  for (const page of pages) it(page, () => expect(wrongIn(textOf(page))).to.deep.equal([]));
});
