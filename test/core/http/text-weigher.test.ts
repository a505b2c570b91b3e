import { expect } from 'chai';
import { countTokens as countCl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { countTokens as countO200k } from 'gpt-tokenizer/encoding/o200k_base';
import { JsonScanner, type JsonToken } from '../../../core/http/json-scanner';
import { TextWeigher } from '../../../core/http/text-weigher';
import { joinedPairs } from '../../support/joined-pairs-table';
import { seeded } from '../../support/random';
import { textOf } from '../../support/sources';

/** The largest factor for prose. A larger bound would make small accounts wait for calls that cost little. */
const MOST_PROSE_EXCESS = 4;
const MOST_JSON_EXCESS = 2.5;

const CASES = Number(process.env['FUZZ_TEXTS'] ?? 20_000);

/** Returns the bound of a text as a body has it: a JSON string that arrives in pieces. */
function boundOf(text: string, { json = JSON.stringify(text), pieceBytes = 1_000_000 } = {}): number {
  let tokens = -1;
  const scanner = new JsonScanner(
    {
      open: () => {},
      close: () => {},
      key: () => {},
      scalar: (_depth, _first, token: JsonToken) => (tokens = token.tokens),
    },
    new TextWeigher(),
  );
  const bytes = Buffer.from(json);
  for (let at = 0; at < bytes.length; at += pieceBytes) scanner.feed(bytes.subarray(at, at + pieceBytes));
  scanner.finish();
  return tokens;
}

function escaped(text: string): string {
  return `"${[...Array(text.length).keys()].map((at) => `\\u${text.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`;
}

/** Counts the tokens of every tokenizer. Special tokens count as text, as vendors count them. */
function tokensOf(text: string): { readonly least: number; readonly most: number } {
  const counts = [
    countCl100k(text, { disallowedSpecial: new Set() }),
    countO200k(text, { disallowedSpecial: new Set() }),
  ];
  return { least: Math.min(...counts), most: Math.max(...counts) };
}

const PROSE: Readonly<Record<string, string>> = {
  'docs/routing.md': textOf('docs/routing.md'),
  'docs/request-path.md': textOf('docs/request-path.md'),
  'CONTRIBUTING.md': textOf('CONTRIBUTING.md'),
  'README.md': textOf('README.md'),
  'CHANGELOG.md': textOf('CHANGELOG.md'),
  'sentences in minified JSON': JSON.stringify(JSON.parse(textOf('schemas/gateway.config.schema.json'))),
};
const lock = JSON.parse(textOf('package-lock.json')) as { packages: Record<string, unknown> };
const JSON_TEXTS: Readonly<Record<string, string>> = {
  'package-lock.json': JSON.stringify(lock, null, 2).slice(0, 200_000),
  'package-lock.json, minified': JSON.stringify(lock).slice(0, 200_000),
  'a configuration schema': textOf('schemas/gateway.config.schema.json'),
  numbers: JSON.stringify(
    Array.from({ length: 500 }, (_, at) => ({ at, value: (at * 7919) % 10_007, share: at / 500 })),
  ),
};
const OTHERS: Readonly<Record<string, string>> = {
  code: textOf('core/http/json-scanner.ts'),
  Lua: textOf('core/ledger/redis/reserve.lua'),
  SQL: textOf('docs/schema.sql'),
  Russian: 'Всем привет, сегодня мы поговорим о том, как работает шлюз и почему это важно для пользователей.',
  Chinese: '今天我们来讨论一下网关是如何工作的，以及为什么这对用户很重要。',
  Japanese: 'ゲートウェイがどのように機能するか、なぜそれがユーザーにとって重要なのかを説明します。',
  Hindi: 'आज हम चर्चा करेंगे कि गेटवे कैसे काम करता है',
  emoji: '😀😃🎉👍🏽👩‍👩‍👧',
  'special tokens': '<|endoftext|><|im_start|>user<|im_sep|>',
};

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
const SIGNS = '!#$%&()*+,-./:;<=>?@[]^_`{|}~\'"\\ ';
const POOLS: readonly string[] = [
  LETTERS,
  `${LETTERS} `,
  'aeinrst ',
  'jqxzvkgw',
  `${LETTERS}${LETTERS.toUpperCase()}0123456789`,
  `${LETTERS}${LETTERS.toUpperCase()}${SIGNS}`,
  SIGNS,
  '   \n\ta{',
  '0123456789 ',
  "'stvemldrSTVEMLDR a",
  'éüñßабвгдеж ',
  '中文日本語囍龘한국',
  `abé中😀\n${SIGNS}`,
];

describe("the upper bound of a text's tokens", () => {
  it('knows the pairs that both vocabularies join', async () => {
    const { printed, high } = joinedPairs();
    const written = textOf('core/http/joined-pairs.ts').replaceAll(/' \+\n\s+'/g, '');
    expect(written).to.contain(`'${printed}'`).and.contain(`'${high}'`);
  });

  for (const [kind, texts, mostExcess] of [
    ['prose', PROSE, MOST_PROSE_EXCESS],
    ['JSON', JSON_TEXTS, MOST_JSON_EXCESS],
    ['other text', OTHERS, undefined],
  ] as const) {
    const excesses = Object.entries(texts).map(([name, text]) => ({
      name,
      excess: boundOf(text) / tokensOf(text).least,
    }));
    const told = excesses.map(({ name, excess }) => `${name} ${excess.toFixed(2)}`).join(', ');
    it(`holds for ${kind}${mostExcess === undefined ? '' : `, and is below ${mostExcess} times the tokens`} (${told})`, () => {
      for (const [name, text] of Object.entries(texts)) expect(boundOf(text), name).to.be.at.least(tokensOf(text).most);
      if (mostExcess !== undefined)
        for (const { name, excess } of excesses) expect(excess, name).to.be.below(mostExcess);
    });
  }

  it(`holds for ${CASES} random texts, escaped or not`, function () {
    this.timeout(600_000);
    const random = seeded(4_711);
    for (let at = 0; at < CASES; at += 1) {
      const pool = [...random.pick(POOLS)];
      const text = Array.from({ length: 1 + random.below(40) }, () => random.pick(pool)).join('');
      const { most } = tokensOf(text);
      expect(boundOf(text), JSON.stringify(text)).to.be.at.least(most);
      if (at % 10 === 0) expect(boundOf(text, { json: escaped(text) }), JSON.stringify(text)).to.be.at.least(most);
    }
  });

  it('holds for texts that a search has optimised to have many tokens', function () {
    this.timeout(60_000);
    const random = seeded(17);
    for (const pool of POOLS.slice(0, 10).map((each) => [...each])) {
      let text = Array.from({ length: 24 }, () => random.pick(pool));
      let most = 0;
      for (let tries = 0; tries < 400; tries += 1) {
        const changed = text.with(random.below(text.length), random.pick(pool));
        const tokens = tokensOf(changed.join('')).most;
        expect(boundOf(changed.join('')), changed.join('')).to.be.at.least(tokens);
        if (tokens >= most) [most, text] = [tokens, changed];
      }
    }
  });

  it('does not depend on the size of the pieces', () => {
    const text = `${PROSE['README.md']?.slice(0, 3_000)} it's 12345 \\ "中文"\t  end`;
    const whole = boundOf(text);
    for (const pieceBytes of [1, 2, 3, 7, 64]) expect(boundOf(text, { pieceBytes })).to.equal(whole);
  });

  it('is three tokens for a \\u escape, because its character has at most three bytes', () => {
    expect(boundOf('', { json: '"\\u9f98\\ud83d\\ude00"' })).to.equal(9);
  });
});
