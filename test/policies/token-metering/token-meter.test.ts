import assert from 'node:assert/strict';
import type { Candidate } from '../../../core/catalog';
import { UNKNOWN_USAGE } from '../../../core/usage';
import chat from '../../../plugins/upstreams/chat';
import messages from '../../../plugins/upstreams/messages';
import { TokenMeter } from '../../../policies/token-metering/token-meter';

const CANDIDATE = { model: { context: 1_000, maxOutput: 100 } } as Candidate;
const ESTIMATE = 5_000;

function meter(choices = 1): TokenMeter {
  const made = new TokenMeter({ inputTokensEstimate: ESTIMATE, choices });
  made.begin(CANDIDATE);
  return made;
}

function usage(inputTokens: number | undefined, outputTokens: number | undefined, more: object = {}) {
  return { ...UNKNOWN_USAGE, inputTokens, outputTokens, ...more };
}

describe('the meter', () => {
  it('charges what was reported, the first event and the last put together', () => {
    const made = meter();
    made.note({ usage: usage(10, undefined, { cacheReadTokens: 3, cacheWriteTokens: 0, cacheWrite1hTokens: 7 }) });
    made.note({ content: true, contentBytes: 400 });
    made.note({ usage: usage(undefined, 20, { cacheWriteTokens: 7 }), finish: true, finalUsage: true });
    assert.deepEqual(made.read(), {
      billing: 'actual',
      usage: { inputTokens: 10, outputTokens: 20, cacheReadTokens: 3, cacheWriteTokens: 0, cacheWrite1hTokens: 7 },
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
        assert.equal(reading.usage.outputTokens, 11);
        assert.equal(reading.usage.inputTokens, 10);
      }
    });

    it(`takes the estimate, within the context, when the input count is ${name}`, () => {
      const made = meter();
      made.noteBody(messages.readBody({ usage: { input_tokens: value, output_tokens: 20 } }).usage, 8);
      assert.deepEqual(made.read(), { billing: 'estimated', usage: usage(1_000, 2) });
    });
  }

  it('counts instead when an adapter of another maker passes nonsense on', () => {
    for (const count of [Number.NaN, -5, 0.5, Number.POSITIVE_INFINITY]) {
      for (const nonsense of [usage(10, count), usage(count, 10), usage(10, 10, { cacheReadTokens: count })]) {
        const made = meter();
        made.noteBody(nonsense, 4);
        const reading = made.read();
        assert.equal(reading.billing, 'estimated');
        for (const each of Object.values(reading.usage)) assert(each === undefined || Number.isSafeInteger(each));
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
    assert.deepEqual(made.readPartial(), usage(10, 3));
    made.note({ usage: usage(undefined, 1) });
    assert.equal(made.readPartial().outputTokens, 3);
    made.note({ usage: usage(undefined, 50) });
    assert.equal(made.readPartial().outputTokens, 50);
    made.note({ usage: usage(undefined, 1e9) });
    assert.equal(made.readPartial().outputTokens, 3);
  });

  it('forgets an attempt when the next begins', () => {
    const made = meter();
    made.note({ usage: usage(10, 20), contentBytes: 100 });
    made.begin(CANDIDATE);
    assert.deepEqual(made.read(), { billing: 'estimated', usage: usage(1_000, 0) });
  });
});
