import { expect } from 'chai';
import * as fc from 'fast-check';
import type { ModelEntry } from '../../../core/catalog/catalog';
import { costOf } from '../../../core/catalog/price';
import { UNKNOWN_USAGE } from '../../../core/catalog/usage';
import { type Reading, textReading } from '../../../core/dialects/reading';
import { MAX_AMOUNT_E8 } from '../../../core/money';
import { holdFor, tokensFor } from '../../../policies/reserve-settle/hold';
import { imageTokens, sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';

/** Costs one unit per input token and ten per output token. */
const simple = { price: samplePrice(1_000_000n, 10_000_000n), context: 5_000, maxOutput: 400, estimatedMaxTokens: 100 };
const candidate = sampleCandidate('a', { model: simple });

describe('the hold of a call', () => {
  it('covers the input and the output that the client allows', () => {
    expect(holdFor(sampleModelRequest({ maxOutputTokens: 7 }), [candidate])).to.equal(1_000n + 70n);
  });

  it('covers the longest answer of the model if the client sets no limit', () => {
    expect(holdFor(sampleModelRequest(), [candidate])).to.equal(1_000n + 4_000n);
  });

  describe('with tools that run at the vendor', () => {
    const tool = { meter: 'webSearch', pieces: undefined, isReported: true, param: 'tools[0].type' } as const;
    const limit = { runsModel: true, insert: undefined };
    const price = { ...simple.price, pieces: new Map([['webSearch', 30n]]) };
    const holding = (toolUses: Reading['toolUses'], ...models: readonly Partial<ModelEntry>[]) =>
      holdFor(
        sampleModelRequest({ maxOutputTokens: 1, reading: { ...textReading(1_000), toolUses } }),
        models.map((model) => sampleCandidate('a', { model: { ...simple, price, ...model } })),
      );

    it("covers a context window and a piece for each use: one, or the model's own limit", () => {
      expect(holding([{ ...tool, limit }], {})).to.equal(1_000n + 5_000n + 10n + 30n);
      const few = { toolUses: new Map([['webSearch', 2]]) };
      expect(holding([{ ...tool, limit }], few)).to.equal(1_000n + 2n * 5_000n + 10n + 60n);
      expect(holding([{ ...tool, limit }], few, {}), 'the dearest candidate').to.equal(1_000n + 10_000n + 70n);
    });

    it('covers at most nine further runs, and every piece', () => {
      const many = { ...tool, pieces: 400, limit };
      expect(holding([many, many], {})).to.equal(1_000n + 45_000n + 10n + 24_000n);
    });

    it('never exceeds the largest amount of the ledger', () => {
      const dear = { price: { ...price, pieces: new Map([['webSearch', MAX_AMOUNT_E8]]) } };
      expect(holding([{ ...tool, pieces: 1_000, limit }], dear)).to.equal(MAX_AMOUNT_E8);
    });
  });

  describe('with content that is not in the body', () => {
    const holding = (reading: Partial<Reading>, model: Partial<ModelEntry> = {}, freeMembers: readonly string[] = []) =>
      holdFor(sampleModelRequest({ maxOutputTokens: 1, reading: { ...textReading(1_000), ...reading } }), [
        sampleCandidate('a', { model: { ...simple, ...model }, upstream: { freeMembers: new Set(freeMembers) } }),
      ]);
    const bounds = { imageByUrl: 200, documentByUrl: 600 };

    it('covers the context window at the dearest price of input', () => {
      for (const reading of [{ isUnbounded: true }, { imagesByUrl: 1 }, { documents: 1 }, { heldMembers: ['x'] }])
        expect(holding(reading)).to.equal(5_010n);
      const price = samplePrice(1_000_000n, 0n, { cacheWrite1h: 2_000_000n });
      expect(holding({ documents: 1 }, { price })).to.equal(10_000n);
    });

    it("covers the operator's bounds instead, at most the context window", () => {
      expect(holding({ imagesByUrl: 2, documents: 1 }, { bounds })).to.equal(2_010n);
      expect(holding({ documents: 100 }, { bounds })).to.equal(5_010n);
      expect(holding({ documents: 1, isUnbounded: true }, { bounds })).to.equal(5_010n);
      expect(holding({ documents: 1, imagesByUrl: 1 }, { bounds: { ...bounds, imageByUrl: undefined } })).to.equal(
        5_010n,
      );
    });

    it('covers one more context window and answer for each further run of the model', () => {
      expect(holding({ furtherPasses: 2 })).to.equal(11_010n);
      expect(holding({ isUnbounded: true, furtherPasses: 1, furtherAnswers: 1 })).to.equal(10_000n + 4_010n);
    });

    it('covers the extra tokens of tools, images and predicted output', () => {
      expect(
        holding(
          { toolOverheads: 2, images: new Map([['auto', 1]]) },
          { toolOverheadTokens: 300, imageTokens: imageTokens(400) },
        ),
      ).to.equal(2_010n);
      expect(holding({ predictedTokens: 5 })).to.equal(1_060n);
      expect(holding({ predictedTokens: 5 }, { tokenizerFactor: 2 })).to.equal(2_110n);
    });

    it('adds nothing for a member that the upstream declares free', () => {
      expect(holding({ heldMembers: ['x'] }, {}, ['x'])).to.equal(1_010n);
      expect(holding({ heldMembers: ['x', 'y'] }, {}, ['x'])).to.equal(5_010n);
    });
  });

  it('covers no more output than the model can produce', () => {
    expect(holdFor(sampleModelRequest({ maxOutputTokens: 1_000_000 }), [candidate])).to.equal(1_000n + 4_000n);
  });

  it('covers no more input than the model accepts', () => {
    expect(holdFor(sampleModelRequest({ inputTokensEstimate: 9_999, maxOutputTokens: 1 }), [candidate])).to.equal(
      5_010n,
    );
  });

  it('counts the estimate of the input for the limits by the minute, and the largest output', () => {
    const asked = { inputTokensEstimate: 400, reading: textReading(1_200) };
    expect(tokensFor(sampleModelRequest({ ...asked, maxOutputTokens: 7 }), [candidate])).to.equal(407);
    expect(tokensFor(sampleModelRequest({ ...asked, inputTokensEstimate: 9_999 }), [candidate])).to.equal(5_400);
  });

  it('counts what NFKC makes longer for Messages, unless the model says otherwise', () => {
    const reading: Reading = { ...textReading(1_000), normalizing: () => 500 };
    const held = (protocol: 'messages' | 'chat', model: Partial<ModelEntry> = {}) =>
      holdFor(sampleModelRequest({ protocol, maxOutputTokens: 1, reading }), [
        sampleCandidate('a', { model: { ...simple, ...model } }),
      ]);
    expect([held('messages'), held('messages', { normalizes: 'none' })]).to.deep.equal([1_510n, 1_010n]);
    expect([held('chat'), held('chat', { normalizes: 'nfkc' })]).to.deep.equal([1_010n, 1_510n]);
  });

  it('covers a context window for each input of an embeddings call', () => {
    const embedded = (inputs: number, reading: Partial<Reading> = {}) =>
      holdFor(sampleModelRequest({ inputs, maxOutputTokens: 0, reading: { ...textReading(9_000), ...reading } }), [
        candidate,
      ]);
    expect(embedded(1)).to.equal(5_000n);
    expect(embedded(2)).to.equal(9_000n);
    expect(embedded(3, { isUnbounded: true })).to.equal(15_000n);
  });

  it('covers every answer that the call requests', () => {
    expect(holdFor(sampleModelRequest({ maxOutputTokens: 7, choices: 3 }), [candidate])).to.equal(1_000n + 210n);
  });

  it('covers input at the price of cache writes if that is the dearest', () => {
    const price = samplePrice(1_000_000n, 0n, { cacheWrite1h: 2_000_000n });
    const dear = sampleCandidate('a', { model: { ...simple, price } });
    expect(holdFor(sampleModelRequest(), [dear])).to.equal(2_000n);
  });

  it('covers the dearest candidate, wherever it is in the order', () => {
    const dear = sampleCandidate('b', { model: { ...simple, price: samplePrice(3_000_000n, 10_000_000n) } });
    for (const candidates of [
      [candidate, dear],
      [dear, candidate],
    ])
      expect(holdFor(sampleModelRequest({ maxOutputTokens: 1 }), candidates)).to.equal(3_010n);
  });

  describe('for a call that may be translated', () => {
    it('covers the cache writes that a vendor makes by itself, if the call is translated', () => {
      const price = samplePrice(3_000_000n, 1_000_000n, { cacheWrite: 4_000_000n });
      const model = { ...simple, price, toolOverheadTokens: 0 };
      const translated = { ...sampleCandidate('a', { model }), dialect: 'chat' as const };
      const reading: Reading = { ...textReading(1_000), cacheWrites: 'none' };
      const request = sampleModelRequest({ stream: true, maxOutputTokens: 7, reading });
      expect(holdFor(request, [candidate, translated])).to.equal(4_000n + 7n);
      expect(holdFor(request, [candidate, { ...translated, dialect: 'messages' }])).to.equal(3_000n + 7n);
    });

    it("covers the vendor's own instructions for tools, if the call is translated and has tools", () => {
      const model = { ...simple, toolOverheadTokens: 300 };
      const translated = { ...sampleCandidate('a', { model }), dialect: 'messages' as const };
      const held = (hasTools: boolean) => {
        const reading: Reading = { ...textReading(1_000), cacheWrites: 'none', hasTools };
        return holdFor(sampleModelRequest({ maxOutputTokens: 7, reading }), [translated]);
      };
      expect(held(true) - held(false)).to.equal(300n);
      expect(held(false)).to.equal(1_000n + 70n);
    });
  });

  it('never is below the cost at any candidate while the tokens stay within the bounds', () => {
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
