import assert from 'node:assert/strict';
import type { Candidate } from '../../../core/catalog/catalog';
import { outputTokens, tokensOf, totalInputTokens, type Usage, usageOf } from '../../../core/catalog/usage';
import { textReading } from '../../../core/dialects/reading';
import chat from '../../../plugins/upstreams/chat';
import messages from '../../../plugins/upstreams/messages';
import { TokenMeter } from '../../../policies/token-metering/token-meter';

const CANDIDATE = { model: { context: 1_000, maxOutput: 100 } } as Candidate;
const ESTIMATE = 5_000;

function meter(choices = 1): TokenMeter {
  const made = new TokenMeter({ inputTokensEstimate: ESTIMATE, choices, reading: textReading(ESTIMATE) });
  made.begin(CANDIDATE);
  return made;
}

function usage(inputTokens: number | undefined, outputTokens: number | undefined, more: object = {}) {
  return usageOf({ input: inputTokens, output: outputTokens, ...more });
}

/** Input and output of all passes. */
function totals(used: Usage): readonly (number | undefined)[] {
  return [totalInputTokens(used), outputTokens(used)];
}

describe('the meter', () => {
  it('charges what was reported, the first event and the last put together', () => {
    const made = meter();
    made.note({ usage: usage(10, undefined, { cacheRead: 3, cacheWrite: 0, cacheWrite1h: 7 }) });
    made.note({ content: true, contentBytes: 400 });
    made.note({ usage: usage(undefined, 20, { cacheWrite: 7 }), finish: true, finalUsage: true });
    assert.deepEqual(made.read(), {
      billing: 'actual',
      isEstimate: false,
      usage: usage(10, 20, { cacheRead: 3, cacheWrite: 0, cacheWrite1h: 7 }),
    });
  });

  const UNUSABLE: readonly [string, unknown][] = [
    ['missing', undefined],
    ['null', null],
    ['negative', -1],
    ['1e308', 1e308],
    ['huge', 1_000_000_000],
    ['just above context and output', 1_101],
    ['a fraction', 1.5],
    ['a string', '20'],
    ['an object', {}],
    ['true', true],
  ];
  for (const [name, value] of UNUSABLE) {
    it(`counts instead when the output count is ${name}, in either protocol, streamed or not`, () => {
      const inMessages = { input_tokens: 10, output_tokens: value };
      const inChat = { prompt_tokens: 10, completion_tokens: value };
      const readings = [inMessages, inChat].flatMap((reported, index) => {
        const adapter = index === 0 ? messages : chat;
        const whole = meter();
        whole.noteBody(adapter.readBody({ usage: reported }).usage, 41);
        const streamed = meter();
        streamed.note({ content: true, contentBytes: 41, usage: usage(10, 1) });
        const last =
          index === 0
            ? { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: reported }
            : { choices: [], usage: reported };
        streamed.note(adapter.readEvent({ name: undefined, data: JSON.stringify(last) }));
        return [whole.read(), streamed.read()];
      });
      for (const reading of readings) {
        assert.equal(reading.billing, 'estimated');
        assert.equal(outputTokens(reading.usage), 11);
        assert.equal(tokensOf(reading.usage, ['input']), 10);
      }
    });

    it(`takes the estimate, within the context, when the input count is ${name}`, () => {
      const made = meter();
      made.noteBody(messages.readBody({ usage: { input_tokens: value, output_tokens: 20 } }).usage, 8);
      assert.deepEqual(made.read(), { billing: 'estimated', isEstimate: true, usage: usage(1_000, 2) });
    });
  }

  it('counts instead when an adapter of another maker passes nonsense on', () => {
    for (const count of [Number.NaN, -5, 0.5, Number.POSITIVE_INFINITY]) {
      for (const nonsense of [usage(10, count), usage(count, 10), usage(10, 10, { cacheRead: count })]) {
        const made = meter();
        made.noteBody(nonsense, 4);
        const reading = made.read();
        assert.equal(reading.billing, 'estimated');
        for (const { counts } of reading.usage.passes)
          for (const each of counts.values()) assert(each === undefined || Number.isSafeInteger(each));
      }
    }
  });

  it('believes as many outputs as there are choices', () => {
    for (const [choices, billing] of [
      [1, 'estimated'],
      [2, 'actual'],
    ] as const) {
      const made = meter(choices);
      made.noteBody(usage(10, 2_000), 4);
      assert.equal(made.read().billing, billing);
    }
  });

  it('charges the output relayed so far when an answer is broken off', () => {
    const made = meter();
    made.note({ usage: usage(10, undefined) });
    for (let index = 0; index < 3; index += 1) made.note({ content: true, contentBytes: 3 });
    assert.deepEqual(made.readPartial(), { isEstimate: true, usage: usage(10, 3) });
    made.note({ usage: usage(undefined, 1) });
    assert.equal(outputTokens(made.readPartial().usage), 3);
    made.note({ usage: usage(undefined, 50) });
    assert.equal(outputTokens(made.readPartial().usage), 50);
    made.note({ usage: usage(undefined, 1e9) });
    assert.equal(outputTokens(made.readPartial().usage), 3);
  });

  it('adds hidden tokens to the output that was relayed, not to the output that was reported', () => {
    const made = meter();
    made.note({ usage: usage(10, undefined), contentBytes: 8 });
    assert.equal(outputTokens(made.readPartial(500).usage), 502);
    made.note({ usage: usage(undefined, 600) });
    assert.equal(outputTokens(made.readPartial(500).usage), 600);
    assert.equal(outputTokens(made.readPartial(700).usage), 702);
  });

  it('forgets an attempt when the next begins', () => {
    const made = meter();
    made.note({ usage: usage(10, 20), contentBytes: 100 });
    made.begin(CANDIDATE);
    assert.deepEqual(made.read(), { billing: 'estimated', isEstimate: true, usage: usage(1_000, 0) });
  });

  describe('of an answer that another candidate goes on with', () => {
    const OTHER = { model: { context: 1_000, maxOutput: 100 } } as Candidate;

    it('has the input as the first reported it, what was relayed of both, and what the second reports', () => {
      const made = meter();
      made.note({ usage: usage(10, undefined, { cacheRead: 4 }) });
      made.note({ content: true, contentBytes: 14 });
      made.goOn(OTHER);
      made.note({ usage: usage(14, 7), finish: true, finalUsage: true });
      assert.deepEqual(made.read(), {
        billing: 'estimated',
        isEstimate: false,
        usage: { passes: [...usage(10, 4, { cacheRead: 4 }).passes, ...usage(undefined, 7).passes] },
        parts: [
          { candidate: CANDIDATE, usage: usage(10, 4, { cacheRead: 4 }) },
          { candidate: OTHER, usage: usage(undefined, 7) },
        ],
      });
    });

    it('has the input as the second reports it, less what had been said, where the first did not come to it', () => {
      const made = meter();
      made.note({ content: true, contentBytes: 14 });
      made.goOn(OTHER);
      made.note({ usage: usage(14, 7), finish: true, finalUsage: true });
      const { parts } = made.read();
      assert.deepEqual(parts, [
        { candidate: CANDIDATE, usage: usage(undefined, 4) },
        { candidate: OTHER, usage: usage(10, 7) },
      ]);
      assert.equal(tokensOf(made.readPartial().usage, ['input']), 10);
    });

    it('has no input below zero, when more had been said than the second counts', () => {
      const made = meter();
      made.note({ content: true, contentBytes: 100 });
      made.goOn(OTHER);
      made.note({ usage: usage(14, 7), finish: true, finalUsage: true });
      assert.equal(tokensOf(made.read().usage, ['input']), 0);
    });

    it('has an estimate where nobody reports anything, and all of it when the client leaves', () => {
      const made = meter();
      made.note({ content: true, contentBytes: 14 });
      made.goOn(OTHER);
      made.note({ content: true, contentBytes: 8 });
      assert.deepEqual(totals(made.read().usage), [1_000, 6]);
      assert.equal(made.read().isEstimate, true);
      assert.deepEqual(totals(made.readPartial().usage), [1_000, 6]);
    });

    it('counts three as it counts two', () => {
      const made = meter();
      made.note({ usage: usage(10, undefined) });
      for (const next of [OTHER, CANDIDATE]) {
        made.note({ content: true, contentBytes: 8 });
        made.goOn(next);
      }
      made.note({ usage: usage(99, 5), finish: true, finalUsage: true });
      assert.deepEqual(totals(made.read().usage), [10, 9]);
    });
  });
});
