import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { costOf } from '../../../core/catalog/price';
import { usageOf } from '../../../core/catalog/usage';
import { holdFor } from '../../../policies/reserve-settle/hold';
import { sampleCandidate, samplePrice } from '../../support/catalog-samples';
import { ask } from '../model-request/support';

const CONTEXT = 20_000;
/** The number of runs of the model after which the vendor pauses an answer. */
const FURTHER_RUNS = 9;
const PIECES = new Map([
  ['webSearch', 1_000_000n],
  ['webFetch', 0n],
  ['codeExecution', 500_000n],
]);

/** How the vendor counts each tool, written independently of our tables. */
const TOOLS = {
  web_search_20250305: { meter: 'webSearch', runsCode: false, isLimited: true },
  web_search_20260318: { meter: 'webSearch', runsCode: true, isLimited: true },
  web_fetch_20250910: { meter: 'webFetch', runsCode: false, isLimited: true },
  web_fetch_20260309: { meter: 'webFetch', runsCode: true, isLimited: true },
  code_execution_20260521: { meter: 'codeExecution', runsCode: true, isLimited: false },
} as const;

const tool = fc.record({
  type: fc.constantFrom(...(Object.keys(TOOLS) as (keyof typeof TOOLS)[])),
  max_uses: fc.option(fc.integer({ min: 0, max: 12 }), { nil: undefined }),
});

describe('the hold of a call with tools of the vendor', () => {
  it('covers the highest charge that the vendor may make for these tools', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(tool, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 8 }),
        fc.integer({ min: 0, max: 3_000 }),
        async (tools, usual, letters) => {
          const body = {
            model: 'm',
            max_tokens: 50,
            messages: [{ role: 'user', content: 'a'.repeat(letters) }],
            tools: tools.map(({ type, max_uses }) => ({ type, ...(TOOLS[type].isLimited && { max_uses }) })),
          };
          const request = await ask(body);
          const candidate = sampleCandidate('acme', {
            model: {
              price: { ...samplePrice(2_000_000n, 9_000_000n, { cacheWrite1h: 4_000_000n }), pieces: PIECES },
              context: CONTEXT,
              maxOutput: 100,
              toolUses: new Map([['webSearch', usual]]),
            },
          });
          const hold = holdFor(request, [candidate]);

          let runs = 0;
          const pieces: Record<string, number> = {};
          for (const { type, max_uses } of tools) {
            const { meter, runsCode, isLimited } = TOOLS[type];
            const uses = isLimited ? (max_uses ?? (meter === 'webSearch' ? usual : 1)) : 1;
            runs += runsCode ? FURTHER_RUNS : uses;
            pieces[meter] = (pieces[meter] ?? 0) + uses;
          }
          const input = letters / 8 + Math.min(runs, FURTHER_RUNS) * CONTEXT;
          const usage = usageOf({ input: 0, cacheWrite1h: Math.floor(input), output: 50, ...pieces });
          assert.ok(costOf(usage, candidate.model.price) <= hold);
        },
      ),
      { numRuns: 300 },
    );
  });
});
