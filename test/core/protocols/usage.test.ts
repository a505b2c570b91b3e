import { expect } from 'chai';
import * as fc from 'fast-check';
import {
  countsIn,
  INPUT_METERS,
  mergeUsage,
  outputTokens,
  totalInputTokens,
  UNKNOWN_USAGE,
  type Usage,
  usageOf,
} from '../../../core/catalog/usage';
import { readChatUsage as readChat } from '../../../core/protocols/chat/usage';
import { readConverseUsage as readConverse } from '../../../core/protocols/converse/usage';
import { readEmbeddingsUsage as readEmbeddings } from '../../../core/protocols/embeddings/usage';
import { readGeminiUsage as readGemini } from '../../../core/protocols/gemini/usage';
import { readMessagesUsage as readMessages } from '../../../core/protocols/messages/usage';
import { readResponsesUsage as readResponses } from '../../../core/protocols/responses/usage';
import type { UsageSettings } from '../../../core/protocols/usage-report';

type Report = Readonly<Record<string, unknown>>;

interface Row {
  readonly report: Report;
  readonly counts: Readonly<Record<string, number>>;
  readonly suspect?: readonly string[];
  readonly unknown?: readonly string[];
  readonly settings?: UsageSettings;
}

function reads(read: (report: Report, settings?: UsageSettings) => Usage, rows: Readonly<Record<string, Row>>): void {
  for (const [is, { report, counts, suspect, unknown, settings }] of Object.entries(rows))
    it(is, () => {
      const usage = read(report, settings);
      expect(countsIn(usage)).to.deep.equal(counts);
      expect([usage.suspect, usage.unknown]).to.deep.equal([suspect, unknown]);
    });
}

const chat = (report: Report, settings?: UsageSettings) => readChat({ usage: report }, settings);
const prompt = (more: Report) => ({ prompt_tokens: 1_000, completion_tokens: 100, ...more });
const cached = (cached_tokens: number) => ({ prompt_tokens_details: { cached_tokens } });
const thought = (reasoning_tokens: number) => ({ completion_tokens_details: { reasoning_tokens } });
const PLAIN = { input: 1_000, output: 100 };
const TOTAL = 'total_tokens';
const OF_REASONING = { totalHas: 'reasoning' } as const;

describe('a usage report of Chat', () => {
  reads(chat, {
    'has reasoning beside the completion if the total does': {
      report: prompt({ ...thought(400), total_tokens: 1_500 }),
      counts: { input: 1_000, output: 500 },
    },
    'has reasoning inside the completion if the total does': {
      report: prompt({ ...thought(40), total_tokens: 1_100 }),
      counts: PLAIN,
    },
    'has reasoning inside the completion without a total': { report: prompt(thought(40)), counts: PLAIN },
    'has a rest of the total as output if the recipe says so': {
      report: prompt({ total_tokens: 1_500 }),
      counts: { input: 1_000, output: 500 },
      settings: OF_REASONING,
    },
    'has reasoning beside the completion if the recipe says so and there is no total': {
      report: prompt(thought(400)),
      counts: { input: 1_000, output: 500 },
      settings: OF_REASONING,
    },
    'has reasoning inside the completion if the total does, whatever the recipe says': {
      report: prompt({ ...thought(40), total_tokens: 1_100 }),
      counts: PLAIN,
      settings: OF_REASONING,
    },
    'has cached tokens beside the prompt if the total does': {
      report: prompt({ ...cached(4_328), total_tokens: 5_428 }),
      counts: { input: 1_000, cacheRead: 4_328, output: 100 },
    },
    'has cached tokens and reasoning beside both sides if the total does': {
      report: prompt({ ...cached(800), ...thought(70), total_tokens: 1_970 }),
      counts: { input: 1_000, cacheRead: 800, output: 170 },
    },
    'has cached tokens beside the prompt if the total does, also where the recipe says what else it has': {
      report: prompt({ ...cached(800), total_tokens: 1_900 }),
      counts: { input: 1_000, cacheRead: 800, output: 100 },
      settings: OF_REASONING,
    },
    'charges no rest that no count explains': {
      report: prompt({ ...thought(40), total_tokens: 1_500 }),
      counts: PLAIN,
      suspect: [TOTAL],
    },
    'is suspect with a total below its sides': {
      report: prompt({ total_tokens: 900 }),
      counts: PLAIN,
      suspect: [TOTAL],
    },
    'is sound with a total of 0, which says nothing': { report: prompt({ total_tokens: 0 }), counts: PLAIN },
    'charges no cached tokens above the prompt': {
      report: prompt({ ...cached(1_500), total_tokens: 1_100 }),
      counts: PLAIN,
      suspect: ['prompt_tokens_details.cached_tokens'],
    },
    'shows no reasoning above the completion': {
      report: prompt({ ...thought(400), total_tokens: 1_100 }),
      counts: PLAIN,
      suspect: ['completion_tokens_details.reasoning_tokens'],
    },
    'charges no cached tokens that it reports twice and differently': {
      report: prompt({ ...cached(500), prompt_cache_hit_tokens: 800 }),
      counts: PLAIN,
      suspect: ['prompt_tokens_details.cached_tokens'],
    },
    'takes a cached count from one place beside a 0 at another': {
      report: prompt({ ...cached(0), cached_tokens: 800 }),
      counts: { input: 200, cacheRead: 800, output: 100 },
    },
    'knows no input from its parts alone': {
      report: { completion_tokens: 100, ...cached(500), total_tokens: 1_100 },
      counts: { output: 100 },
    },
    'names numbers that no row knows': {
      report: prompt({ num_sources_used: 3, citation: { tokens: 5 } }),
      counts: PLAIN,
      unknown: ['num_sources_used', 'citation.tokens'],
    },
    'ignores times and costs': {
      report: prompt({ queue_time: 0.3, total_time: 1.2, cost: 0.95, cost_in_usd_ticks: 1_466_250 }),
      counts: PLAIN,
    },
  });

  const CACHE_PLACES = {
    cacheRead: [
      ['prompt_tokens_details', 'cached_tokens'],
      ['cached_tokens'],
      ['prompt_cache_hit_tokens'],
      ['num_cached_tokens'],
      ['prompt_token_details', 'cached_tokens'],
      ['cache_read_input_tokens'],
    ],
    cacheWrite: [
      ['prompt_tokens_details', 'cache_write_tokens'],
      ['prompt_tokens_details', 'cache_creation_input_tokens'],
      ['prompt_tokens_details', 'created_cache_tokens'],
      ['prompt_tokens_details', 'cache_creation_tokens'],
      ['prompt_tokens_details', 'cache_creation', 'ephemeral_5m_input_tokens'],
      ['cache_creation_input_tokens'],
    ],
  };
  for (const [meter, places] of Object.entries(CACHE_PLACES))
    for (const path of places)
      it(`is read at ${path.join('.')} for the meter ${meter}`, () => {
        const usage = chat(prompt(nested(path, 800)));
        expect(countsIn(usage)).to.deep.equal({ input: 200, [meter]: 800, output: 100 });
        expect(usage.unknown).to.equal(undefined);
      });

  it('is found in the last chunk with a choice and in `x_groq`', () => {
    const usage = prompt({});
    for (const chunk of [{ choices: [{ index: 0, usage }] }, { choices: [], x_groq: { usage } }])
      expect(countsIn(readChat(chunk))).to.deep.equal(PLAIN);
    expect(readChat({ choices: [{ index: 0, usage: null }], usage: null })).to.equal(UNKNOWN_USAGE);
  });

  it('has the same counts, whether its vendor reports cached and reasoning tokens inside the totals or beside them', () => {
    const count = fc.integer({ min: 1, max: 100_000 });
    const split = fc.record({
      fresh: count,
      read: count,
      written: count,
      said: count,
      thought: count,
      readAt: fc.constantFrom(...CACHE_PLACES.cacheRead),
      writtenAt: fc.constantFrom(...CACHE_PLACES.cacheWrite.slice(0, 4)),
      thoughtAt: fc.constantFrom(['completion_tokens_details', 'reasoning_tokens'], ['reasoning_tokens']),
      beside: fc.subarray(['read', 'written', 'thought'] as const),
    });
    void fc.assert(
      fc.property(split, (each) => {
        const { fresh, read, written, said, thought: reasoned, beside } = each;
        const inside = (name: 'read' | 'written' | 'thought') => (beside.includes(name) ? 0 : each[name]);
        const report = [
          nested(each.readAt, read),
          nested(each.writtenAt, written),
          nested(each.thoughtAt, reasoned),
          {
            prompt_tokens: fresh + inside('read') + inside('written'),
            completion_tokens: said + inside('thought'),
            total_tokens: fresh + read + written + said + reasoned,
          },
        ].reduce(merged, {});
        // Two splits of one total can look alike; then the one with fewer counts beside others holds.
        fc.pre(!isAmbiguous([read, written, reasoned], beside.length));
        const usage = chat(report);
        expect(countsIn(usage)).to.deep.equal({
          input: fresh,
          cacheRead: read,
          cacheWrite: written,
          output: said + reasoned,
        });
        expect([usage.reasoning, usage.suspect, usage.unknown]).to.deep.equal([reasoned, undefined, undefined]);
      }),
      { numRuns: 500 },
    );
  });
});

describe('a usage report', () => {
  reads((usage) => readResponses({ usage }), {
    'of Responses has reasoning beside the output if the total does': {
      report: {
        input_tokens: 1_000,
        output_tokens: 100,
        output_tokens_details: { reasoning_tokens: 400 },
        total_tokens: 1_500,
      },
      counts: { input: 1_000, output: 500 },
    },
    'of Responses charges no rest': {
      report: { input_tokens: 1_000, output_tokens: 100, total_tokens: 1_101 },
      counts: PLAIN,
      suspect: [TOTAL],
    },
  });

  reads((usage) => readEmbeddings({ usage }), {
    'of Embeddings charges no rest': {
      report: { prompt_tokens: 5, total_tokens: 7 },
      counts: { input: 5, output: 0 },
      suspect: [TOTAL],
    },
  });

  reads((usageMetadata) => readGemini({ usageMetadata }), {
    'of Gemini has thoughts beside the answer': {
      report: { promptTokenCount: 20, candidatesTokenCount: 198, thoughtsTokenCount: 405, totalTokenCount: 623 },
      counts: { input: 20, output: 603 },
    },
    'of Gemini has thoughts inside the answer if the total does': {
      report: { promptTokenCount: 20, candidatesTokenCount: 603, thoughtsTokenCount: 405, totalTokenCount: 623 },
      counts: { input: 20, output: 603 },
    },
    'of Gemini adds the prompt of tools to the input': {
      report: {
        promptTokenCount: 20,
        toolUsePromptTokenCount: 30,
        candidatesTokenCount: 5,
        totalTokenCount: 55,
      },
      counts: { input: 50, output: 5 },
    },
    'of Gemini counts cached speech once': {
      report: {
        promptTokenCount: 1_000,
        cachedContentTokenCount: 600,
        promptTokensDetails: [
          { modality: 'TEXT', tokenCount: 500 },
          { modality: 'AUDIO', tokenCount: 500 },
        ],
        cacheTokensDetails: [{ modality: 'AUDIO', tokenCount: 200 }],
        candidatesTokenCount: 10,
        candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 4 }],
        totalTokenCount: 1_010,
      },
      counts: { input: 100, cacheRead: 400, audioCacheRead: 200, audioInput: 300, output: 6, imageOutput: 4 },
    },
  });

  reads((usage) => readConverse({ usage }), {
    'of Converse has the writes for an hour apart': {
      report: {
        inputTokens: 10,
        outputTokens: 5,
        totalTokens: 315,
        cacheReadInputTokens: 100,
        cacheWriteInputTokens: 200,
        cacheDetails: [
          { ttl: '5m', inputTokens: 50 },
          { ttl: '1h', inputTokens: 150 },
        ],
      },
      counts: { input: 10, cacheRead: 100, cacheWrite: 50, cacheWrite1h: 150, output: 5 },
    },
  });

  reads((usage) => readMessages({ usage }, true), {
    'of Messages has the writes for an hour apart': {
      report: {
        input_tokens: 10,
        output_tokens: 5,
        cache_creation_input_tokens: 300,
        cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
      },
      counts: { input: 10, cacheWrite: 200, cacheWrite1h: 100, output: 5 },
    },
    'of Messages charges no hour of more writes than there are': {
      report: {
        input_tokens: 10,
        output_tokens: 5,
        cache_creation_input_tokens: 300,
        cache_creation: { ephemeral_1h_input_tokens: 700 },
      },
      counts: { input: 10, cacheWrite: 300, output: 5 },
      suspect: ['cache_creation.ephemeral_1h_input_tokens'],
    },
    'of Messages adds up the writes if their sum is missing': {
      report: {
        input_tokens: 10,
        output_tokens: 5,
        cache_creation: { ephemeral_5m_input_tokens: 200, ephemeral_1h_input_tokens: 100 },
      },
      counts: { input: 10, cacheWrite: 200, cacheWrite1h: 100, output: 5 },
    },
  });
});

describe('two usage reports of one stream', () => {
  const MERGED: Readonly<
    Record<string, { before: Report; now: Report; counts: Report; suspect?: readonly string[] | undefined }>
  > = {
    'keep an input that the last report has as 0': {
      before: { input: 1_000, cacheRead: 600 },
      now: { input: 0, cacheRead: 0, output: 20 },
      counts: { input: 1_000, cacheRead: 600, output: 20 },
    },
    'keep the details of an input that the last report has as a sum': {
      before: { input: 400, cacheRead: 600 },
      now: { input: 1_000, output: 20 },
      counts: { input: 400, cacheRead: 600, output: 20 },
    },
    'take the details that the last report has first': {
      before: { input: 1_000 },
      now: { input: 400, cacheRead: 600, output: 20 },
      counts: { input: 400, cacheRead: 600, output: 20 },
    },
    'let a single meter fall': {
      before: { input: 400, cacheRead: 600 },
      now: { input: 700, cacheRead: 300, output: 20 },
      counts: { input: 700, cacheRead: 300, output: 20 },
    },
    'take a smaller input, which is suspect': {
      before: { input: 400, cacheRead: 600 },
      now: { input: 900, output: 20 },
      counts: { input: 900, output: 20 },
      suspect: ['smaller input'],
    },
    'take a larger input': {
      before: { input: 1_000 },
      now: { input: 1_200, output: 20 },
      counts: { input: 1_200, output: 20 },
    },
    'keep an input of which the last report has only a part': {
      before: { input: 10, cacheRead: 3, cacheWrite1h: 7 },
      now: { cacheWrite: 7, output: 20 },
      counts: { input: 10, cacheRead: 3, cacheWrite1h: 7, output: 20 },
    },
    'replace the output as a whole': {
      before: { input: 10, output: 5, audioOutput: 3 },
      now: { output: 20 },
      counts: { input: 10, output: 20 },
    },
    'keep the pieces of both': {
      before: { input: 10, webSearch: 1 },
      now: { output: 20, webFetch: 2 },
      counts: { input: 10, output: 20, webSearch: 1, webFetch: 2 },
    },
  };
  for (const [is, { before, now, counts, suspect }] of Object.entries(MERGED))
    it(is, () => {
      const merged = mergeUsage(usageOf(before as Record<string, number>), usageOf(now as Record<string, number>));
      expect(countsIn(merged)).to.deep.equal(counts);
      expect(merged.suspect).to.deep.equal(suspect);
    });

  it("keep the first report's input if the last report has several passes (runs of the model) with an input of 0", () => {
    const now = { passes: [{ counts: new Map([['input', 0]]) }, { counts: new Map([['input', 0]]) }] };
    expect(totalInputTokens(mergeUsage(usageOf({ input: 1_000 }), now))).to.equal(1_000);
  });

  it('never cost more input than the larger report, and never nothing if one has input, in any order', () => {
    const count = fc.option(fc.nat(5_000), { nil: undefined });
    const report = fc.record(Object.fromEntries([...INPUT_METERS, 'output'].map((meter) => [meter, count])));
    void fc.assert(
      fc.property(fc.array(report, { minLength: 1, maxLength: 4 }), (reports) => {
        const all = reports.map((each) => usageOf(each));
        const sums = all.map((each) => (countsIn(each)['input'] === undefined ? 0 : totalInputTokens(each)));
        const merged = all.reduce(mergeUsage, UNKNOWN_USAGE);
        if (Math.max(...sums) > 0) expect(totalInputTokens(merged)).to.be.oneOf(sums).and.to.be.above(0);
        const outputs = all.map(outputTokens).filter((each) => each !== undefined);
        expect(outputTokens(merged)).to.equal(outputs.at(-1));
      }),
      { numRuns: 1_000 },
    );
  });
});

function nested([name = '', ...rest]: readonly string[], count: number): Report {
  return { [name]: rest.length === 0 ? count : nested(rest, count) };
}

function merged(one: Report, other: Report): Report {
  const both = { ...one };
  for (const [name, value] of Object.entries(other))
    both[name] = typeof value === 'object' ? merged((one[name] ?? {}) as Report, value as Report) : value;
  return both;
}

/** Whether another choice of counts, not more of them, has the same sum as some of that many. */
function isAmbiguous(counts: readonly number[], most: number): boolean {
  let sums: { of: number; sum: number }[] = [{ of: 0, sum: 0 }];
  for (const count of counts) sums = [...sums, ...sums.map(({ of, sum }) => ({ of: of + 1, sum: sum + count }))];
  const near = sums.filter(({ of }) => of <= most).map(({ sum }) => sum);
  return new Set(near).size < near.length;
}
