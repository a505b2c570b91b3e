import { expect } from 'chai';
import { encode } from 'gpt-tokenizer/encoding/cl100k_base';
import { textOf } from '../../support/sources';
import { ask, refusal } from './support';

const PATH = { url: '/speed/v1/embeddings' };
const embed = (input: unknown, more: object = {}) => ({ model: 'small', input, ...more });

const TEXT = textOf('docs/routing.md');
/** The tokens of a real text, as clients send them that tokenise it themselves. */
const TOKENS = encode(TEXT);

describe('the request of an embeddings call', () => {
  it('is read while it arrives, in pieces of any size, and its body is not changed', async () => {
    const text =
      '{"input" : [ "caf\\u00e9", "é\\"" ],"model":"small", "encoding_format":"base64","big":12345678901234567890}';
    for (const pieceBytes of [1, 7, 1_000]) {
      const request = await ask(text, { ...PATH, pieceBytes });
      expect(request).to.include({ protocol: 'embeddings', modelRequested: 'small', stream: false });
      expect(request).to.include({ maxOutputTokens: 0, choices: 1, inputs: 2 });
      expect(Buffer.concat([...request.body.chunks]).toString()).to.equal(text);
    }
  });

  const INPUTS: readonly [string, unknown, number][] = [
    ['a text', 'Hello', 1],
    ['a list of texts', ['Hello', 'Good morning', '\n'], 3],
    ['the tokens of one text', [15339, 0, 1917], 1],
    ['a list of lists of tokens', [[15339], [15339, 1917]], 2],
    ['as many texts as the vendor takes', Array.from({ length: 2_048 }, () => 'x'), 2_048],
    ['more tokens than inputs', Array.from({ length: 8_192 }, (_, at) => at), 1],
  ];
  for (const [name, input, inputs] of INPUTS) {
    it(`may have ${name} as its input`, async () => {
      for (const pieceBytes of [1, 10_000]) {
        const request = await ask(embed(input, { stream: false }), { ...PATH, pieceBytes });
        expect(request.inputs).to.equal(inputs);
      }
    });
  }

  const WRONG: readonly [string, object | string, string][] = [
    ['no input', { model: 'small' }, 'input'],
    ['null', embed(null), 'input'],
    ['an empty text', embed(''), 'input'],
    ['a number', embed(7), 'input'],
    ['an object', embed({ text: 'Hello' }), 'input'],
    ['an empty list', embed([]), 'input'],
    ['an empty text in a list', embed(['a', '']), 'input[1]'],
    ['an empty list in a list', embed([[1], []]), 'input[1]'],
    ['an object in a list', embed(['a', { text: 'b' }]), 'input[1]'],
    ['null in a list', embed([null]), 'input[0]'],
    ['true in a list', embed([true]), 'input[0]'],
    ['a text among tokens', embed([1, 'a']), 'input[1]'],
    ['a token among texts', embed(['a', 1]), 'input[1]'],
    ['a list among texts', embed(['a', [1]]), 'input[1]'],
    ['a list among tokens', embed([1, [1]]), 'input[1]'],
    ['a text in a list of tokens', embed([[1, 'a']]), 'input[0][1]'],
    ['lists three deep', embed([[[1]]]), 'input[0][0]'],
    ['a fraction', embed([1.5]), 'input[0]'],
    [
      'a number below 0',
      embed([
        [1, 2],
        [3, -4],
      ]),
      'input[1][1]',
    ],
    ['an exponent', '{"model":"small","input":[1e3]}', 'input[0]'],
    ['a number beyond every vocabulary', embed([12_345_678_901]), 'input[0]'],
    ['a list of texts of more than the vendor takes', embed(Array.from({ length: 2_049 }, () => 'x')), 'input'],
    ['more lists of tokens than the vendor takes', embed(Array.from({ length: 2_049 }, () => [1])), 'input'],
    ['input twice', '{"model":"small","input":"a","input":"b"}', 'input'],
    ['a name that differs in case', '{"model":"small","Input":"b","input":"a"}', 'Input'],
    ['a stream', embed('a', { stream: true }), 'stream'],
    ['no model', { input: 'a' }, 'model'],
  ];
  for (const [name, body, param] of WRONG) {
    it(`is refused, and the wrong field is named, if it has ${name}`, async () => {
      for (const pieceBytes of [3, 100_000])
        expect(await refusal(ask(body, { ...PATH, pieceBytes }))).to.equal(`INVALID_FIELD ${param}`);
    });
  }

  it('is forwarded with unknown members; at an official upstream, only large values hold money for a whole context', async () => {
    const more = { input_type: 'search_document', truncate: true, corpus: { id: 'c' } };
    const { reading } = await ask(embed('Hello', more), PATH);
    expect(reading.unknownMembers).to.have.members(['input_type', 'truncate', 'corpus']);
    expect(reading.heldMembers).to.deep.equal(['corpus']);
    expect(reading.smallMembers).to.deep.equal(['input_type', 'truncate']);
    expect(await refusal(ask(embed('Hello', more), { ...PATH, settings: { unknownMembers: 'refuse' } }))).to.match(
      /^NOT_SUPPORTED/,
    );
  });
});

describe('the estimated upper bound of the tokens of an embeddings input', () => {
  const bound = async (input: unknown) => (await ask(embed(input), PATH)).reading.textTokens;

  it('covers an input of token numbers and exceeds it only a little', async () => {
    expect(TOKENS).to.have.length.above(1_000);
    for (const input of [TOKENS, [TOKENS, TOKENS]]) {
      const count = input.flat().length;
      expect(await bound(input)).to.be.within(count, count + 30);
    }
    const short = Array.from({ length: 2_048 }, (_, at) => [at % 10]);
    expect(await bound(short), 'lists of one digit').to.be.within(2_048, 2_048 * 4);
    const long = Array.from({ length: 1_000 }, () => 4_294_967_295);
    expect(await bound(long), 'numbers of ten digits').to.be.within(1_000, 1_030);
  });

  it('covers a batch of texts like a single text, and counts a separator for each', async () => {
    const lines = TEXT.split('\n').filter((line) => line !== '');
    const one = await bound(lines.join(''));
    const counted = lines.reduce((sum, line) => sum + encode(line).length, 0);
    expect(await bound(lines))
      .to.be.at.least(counted)
      .and.at.most(one + lines.length * 4);
  });
});
