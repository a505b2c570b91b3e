import { expect } from 'chai';
import * as fc from 'fast-check';
import { MAX_AMOUNT_E8 } from '../../../core/base/money';
import type { Candidate, ModelEntry, Upstream } from '../../../core/catalog/catalog';
import { costOf } from '../../../core/catalog/price';
import { UNKNOWN_USAGE } from '../../../core/catalog/usage';
import type { CostFactors } from '../../../core/protocols/cost-factors';
import { holdFor, tokensFor } from '../../../policies/reserve-settle/hold';
import { imageTokens, sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest, textReading } from '../../support/request-sample';

/** Costs one unit per input token and ten per output token. */
const simple = { price: samplePrice(1_000_000n, 10_000_000n), context: 5_000, maxOutput: 400, estimatedMaxTokens: 100 };
const candidate = sampleCandidate('a', { model: simple });

interface Held {
  readonly request?: Parameters<typeof sampleModelRequest>[0];
  readonly reading?: Partial<CostFactors>;
  readonly model?: Partial<ModelEntry>;
  readonly upstream?: Partial<Upstream>;
  readonly dialect?: Candidate['dialect'];
}

/** Returns the hold of a call of 1,000 tokens with at most one token of output, at one candidate. */
function held({ request, reading, model, upstream, dialect }: Held): bigint {
  const each = {
    ...sampleCandidate('a', { upstream: upstream ?? {}, model: { ...simple, ...model } }),
    ...(dialect && { dialect }),
  };
  const asked = { maxOutputTokens: 1, reading: { ...textReading(1_000), ...reading }, ...request };
  return holdFor(sampleModelRequest(asked), [each]);
}

const LIMIT = { runsModel: true, insert: undefined };
const TOOL = { meter: 'webSearch', pieces: undefined, isReported: true, param: 'tools[0].type', limit: LIMIT } as const;
const MANY = { ...TOOL, pieces: 400 };
const PIECES = { ...simple.price, pieces: new Map([['webSearch', 30n]]) };
const CACHED = samplePrice(1_000_000n, 0n, { cacheWrite1h: 2_000_000n });
const BOUNDS = { imageByUrl: 200, documentByUrl: 600 };
const FREE = { freeMembers: new Set(['x']) };
const WRITES = { cacheWrite: 4_000_000n };
const NORMALIZING = { normalizing: () => 500 };

const ROWS: readonly (readonly [what: string, of: Held, heldE8: bigint])[] = [
  ['the input and the output that the client allows', { request: { maxOutputTokens: 7 } }, 1_070n],
  ['the longest answer of the model without a limit', { request: { maxOutputTokens: undefined } }, 5_000n],
  ['no more output than the model can produce', { request: { maxOutputTokens: 1_000_000 } }, 5_000n],
  ['no more input than the model accepts', { reading: textReading(9_999) }, 5_010n],
  ['every answer that the call requests', { request: { maxOutputTokens: 7, choices: 3 } }, 1_210n],
  ['a window and a piece for a use of a tool', { reading: { toolUses: [TOOL] }, model: { price: PIECES } }, 6_040n],
  [
    "a window and a piece for each use that is the model's own limit",
    { reading: { toolUses: [TOOL] }, model: { price: PIECES, toolUses: new Map([['webSearch', 2]]) } },
    11_070n,
  ],
  ['nine further runs, and every piece', { reading: { toolUses: [MANY, MANY] }, model: { price: PIECES } }, 70_010n],
  [
    'no more than the largest amount of the ledger',
    {
      reading: { toolUses: [MANY] },
      model: { price: { ...PIECES, pieces: new Map([['webSearch', MAX_AMOUNT_E8]]) } },
    },
    MAX_AMOUNT_E8,
  ],
  ['the window for a reading without a bound', { reading: { isUnbounded: true } }, 5_010n],
  ['the window for an image by URL', { reading: { imagesByUrl: 1 } }, 5_010n],
  ['the window for a document', { reading: { documents: 1 } }, 5_010n],
  ['the window for a held member', { reading: { heldMembers: ['x'] } }, 5_010n],
  ['the window for a small member', { reading: { smallMembers: ['x'] } }, 5_010n],
  ['the window at the dearest price of input', { reading: { documents: 1 }, model: { price: CACHED } }, 10_000n],
  ['input at the price of cache writes', { model: { price: CACHED } }, 2_000n],
  ["the operator's bounds", { reading: { imagesByUrl: 2, documents: 1 }, model: { bounds: BOUNDS } }, 2_010n],
  ['at most the window for many documents', { reading: { documents: 100 }, model: { bounds: BOUNDS } }, 5_010n],
  [
    'the window if one bound is missing',
    { reading: { documents: 1, imagesByUrl: 1 }, model: { bounds: { ...BOUNDS, imageByUrl: undefined } } },
    5_010n,
  ],
  ['a window for each further run', { reading: { furtherPasses: 2 } }, 11_010n],
  [
    'a window and an answer for a further run',
    { reading: { isUnbounded: true, furtherPasses: 1, furtherAnswers: 1 } },
    14_010n,
  ],
  [
    'tools and images',
    {
      reading: { toolOverheads: 2, images: new Map([['auto', 1]]) },
      model: { toolOverheadTokens: 300, imageTokens: imageTokens(400) },
    },
    2_010n,
  ],
  ['predicted output', { reading: { predictedTokens: 5 } }, 1_060n],
  ['predicted output by the factor', { reading: { predictedTokens: 5 }, model: { tokenizerFactor: 2 } }, 2_110n],
  ['nothing for a free member', { reading: { heldMembers: ['x'], smallMembers: ['x'] }, upstream: FREE }, 1_010n],
  ['nothing for a small member', { reading: { smallMembers: ['x'] }, upstream: { tier: 'official' } }, 1_010n],
  ['the window for a member that is not free', { reading: { heldMembers: ['x', 'y'] }, upstream: FREE }, 5_010n],
  ['what NFKC makes longer for Messages', { reading: NORMALIZING, request: { protocol: 'messages' } }, 1_510n],
  [
    'nothing for NFKC where the model does not normalise',
    { reading: NORMALIZING, request: { protocol: 'messages' }, model: { normalizes: 'none' } },
    1_010n,
  ],
  ['nothing for NFKC in Chat', { reading: NORMALIZING, request: { protocol: 'chat' } }, 1_010n],
  [
    'what NFKC makes longer where a model of Chat normalises',
    { reading: NORMALIZING, request: { protocol: 'chat' }, model: { normalizes: 'nfkc' } },
    1_510n,
  ],
  [
    'a window for each input of an embeddings call',
    { reading: textReading(9_000), request: { inputs: 2, maxOutputTokens: 0 } },
    9_000n,
  ],
  [
    'the windows of all inputs without a bound',
    { reading: { isUnbounded: true }, request: { inputs: 3, maxOutputTokens: 0 } },
    15_000n,
  ],
  [
    'the cache writes that a vendor makes of a translated call',
    { reading: { cacheWrites: 'none' }, model: { price: samplePrice(3_000_000n, 0n, WRITES) }, dialect: 'chat' },
    4_000n,
  ],
  [
    'no cache writes of a translated call that Messages does not ask for',
    { reading: { cacheWrites: 'none' }, model: { price: samplePrice(3_000_000n, 0n, WRITES) }, dialect: 'messages' },
    3_000n,
  ],
  [
    "the vendor's own instructions for tools of a translated call",
    { reading: { hasTools: true }, model: { toolOverheadTokens: 300 }, dialect: 'messages' },
    1_310n,
  ],
  ['no instructions without tools', { model: { toolOverheadTokens: 300 }, dialect: 'messages' }, 1_010n],
];

describe('the hold of a call', () => {
  for (const [what, of, heldE8] of ROWS) it(`covers ${what}`, () => expect(held(of)).to.equal(heldE8));

  it('covers the most expensive candidate, at any position in the order', () => {
    const dear = sampleCandidate('b', { model: { ...simple, price: samplePrice(3_000_000n, 10_000_000n) } });
    const request = sampleModelRequest({ maxOutputTokens: 1 });
    expect(
      [
        [candidate, dear],
        [dear, candidate],
      ].map((each) => holdFor(request, each)),
    ).to.deep.equal([3_010n, 3_010n]);
  });

  it('counts the estimated input and the largest output for the limits per minute', () => {
    const asked = { inputTokensEstimate: 400, reading: textReading(1_200) };
    expect(tokensFor(sampleModelRequest({ ...asked, maxOutputTokens: 7 }), [candidate])).to.equal(407);
    expect(tokensFor(sampleModelRequest({ ...asked, inputTokensEstimate: 9_999 }), [candidate])).to.equal(5_400);
  });

  it('is never below the cost at any candidate while the token counts stay within the estimated bounds', () => {
    const e8 = fc.bigInt({ min: 0n, max: 10_000_000_000n });
    const model = fc.record({
      price: fc.tuple(e8, e8, e8).map(([input, output, cache]) => samplePrice(input, output, { cacheWrite: cache })),
      context: fc.integer({ min: 1, max: 300_000 }),
      maxOutput: fc.integer({ min: 1, max: 100_000 }),
    });
    const input = fc.integer({ min: 0, max: 400_000 });
    void fc.assert(
      fc.property(
        fc.array(model, { minLength: 1, maxLength: 4 }),
        input,
        fc.integer({ min: 1, max: 4 }),
        (models, inputTokens, choices) => {
          const candidates = models.map((each, index) => sampleCandidate(`u${index}`, { model: each }));
          const maxOutputTokens = 50_000;
          const request = sampleModelRequest({ inputTokensEstimate: inputTokens, maxOutputTokens, choices });
          const heldE8 = holdFor(request, candidates);
          for (const { model: served } of candidates) {
            const usage = {
              ...UNKNOWN_USAGE,
              cacheWriteTokens: Math.min(inputTokens, served.context),
              outputTokens: Math.min(maxOutputTokens, served.maxOutput) * choices,
            };
            expect(costOf(usage, served.price) <= heldE8).to.equal(true);
          }
        },
      ),
    );
  });
});
