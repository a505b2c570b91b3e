import assert from 'node:assert/strict';
import type { Candidate } from '../../../core/catalog/catalog';
import { outputTokens, tokensOf, usageOf } from '../../../core/catalog/usage';
import { NoteReader } from '../../../core/protocols/notes';
import { TokenUsageCounter } from '../../../policies/token-metering';

const CANDIDATE = { model: { context: 1_000, maxOutput: 100 } } as Candidate;
const ESTIMATE = 5_000;

function meter(): TokenUsageCounter {
  const made = new TokenUsageCounter({ inputTokensEstimate: ESTIMATE });
  made.begin(CANDIDATE);
  return made;
}

function usage(inputTokens: number | undefined, outputTokens: number | undefined, more: object = {}) {
  return usageOf({ input: inputTokens, output: outputTokens, ...more });
}

describe('the token meter', () => {
  it('charges the reported usage, combined from the first and the last event', () => {
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
    ['a fraction', 1.5],
    ['a string', '20'],
    ['an object', {}],
    ['true', true],
  ];
  for (const [name, value] of UNUSABLE) {
    it(`counts the output tokens in the answer itself if the reported count is ${name}, in either protocol, streamed or not`, () => {
      const inMessages = { input_tokens: 10, output_tokens: value };
      const inChat = { prompt_tokens: 10, completion_tokens: value };
      const readings = [inMessages, inChat].flatMap((reported, index) => {
        const reader = () => new NoteReader(index === 0 ? 'messages' : 'chat');
        const whole = meter();
        whole.noteBody(reader().body({ usage: reported }).usage, 41);
        const streamed = meter();
        streamed.note({ content: true, contentBytes: 41, usage: usage(10, 1) });
        const last =
          index === 0
            ? { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: reported }
            : { choices: [], usage: reported };
        streamed.note(reader().event({ name: undefined, data: JSON.stringify(last) }));
        return [whole.read(), streamed.read()];
      });
      for (const reading of readings) {
        assert.equal(reading.billing, 'estimated');
        assert.equal(outputTokens(reading.usage), 11);
        assert.equal(tokensOf(reading.usage, ['input']), 10);
      }
    });

    it(`charges the estimated input, limited to the context window, if the reported input count is ${name}`, () => {
      const made = meter();
      made.noteBody(new NoteReader('messages').body({ usage: { input_tokens: value, output_tokens: 20 } }).usage, 8);
      assert.deepEqual(made.read(), { billing: 'estimated', isEstimate: true, usage: usage(1_000, 2) });
    });
  }

  it('estimates the token counts if an adapter of a plugin returns invalid numbers', () => {
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

  it("accepts every valid count, even above the model's limits, because the hold bounds the charge", () => {
    const made = meter();
    made.noteBody(usage(1_101, 1_000_000), 4);
    assert.deepEqual(made.read(), { isEstimate: false, billing: 'actual', usage: usage(1_101, 1_000_000) });
  });

  it('charges the output relayed so far when an answer is cut off', () => {
    const made = meter();
    made.note({ usage: usage(10, undefined) });
    for (let index = 0; index < 3; index += 1) made.note({ content: true, contentBytes: 3 });
    assert.deepEqual(made.readPartial(), { isEstimate: true, usage: usage(10, 3) });
    made.note({ usage: usage(undefined, 1) });
    assert.equal(outputTokens(made.readPartial().usage), 3);
    made.note({ usage: usage(undefined, 50) });
    assert.equal(outputTokens(made.readPartial().usage), 50);
    made.note({ usage: usage(undefined, 1e9) });
    assert.equal(outputTokens(made.readPartial().usage), 1e9);
  });

  it('charges an interrupted answer by the time-based estimate or its other output count, whichever is larger', () => {
    const made = meter();
    made.note({ usage: usage(10, undefined), contentBytes: 8 });
    assert.equal(outputTokens(made.readPartial(500).usage), 500);
    made.note({ usage: usage(undefined, 600) });
    assert.equal(outputTokens(made.readPartial(500).usage), 600);
    assert.equal(outputTokens(made.readPartial(700).usage), 700);
  });

  it('discards the counts of an attempt when the next attempt begins', () => {
    const made = meter();
    made.note({ usage: usage(10, 20), contentBytes: 100 });
    made.begin(CANDIDATE);
    assert.deepEqual(made.read(), { billing: 'estimated', isEstimate: true, usage: usage(1_000, 0) });
  });
});
