import assert from 'node:assert/strict';
import { annotateCost } from '../../../core/wire/annotate-cost';

function annotate(text: string, costE8 = 12_345n): string {
  return annotateCost(Buffer.from(text), costE8).toString();
}

const TABLE: readonly [string, string, string][] = [
  [
    'adds the cost behind the last count',
    'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens": 7 } ,"x":"\\u00e9é"}\n\n',
    'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens": 7,"cost":0.00012345 } ,"x":"\\u00e9é"}\n\n',
  ],
  ['fills an empty usage', 'data: {"usage":{}}\r\n\r\n', 'data: {"usage":{"cost":0.00012345}}\r\n\r\n'],
  [
    'replaces a cost that the event already has',
    'data:{"usage":{"cost":{"a":1},"prompt_tokens":12345678901234567890}}\n\n',
    'data:{"usage":{"cost":0.00012345,"prompt_tokens":12345678901234567890}}\n\n',
  ],
  [
    'finds an escaped key, and only at the top level',
    'data: {"choices":[{"usage":{"a":1}}],"us\\u0061ge":{"b":2}}\n\n',
    'data: {"choices":[{"usage":{"a":1}}],"us\\u0061ge":{"b":2,"cost":0.00012345}}\n\n',
  ],
  [
    'finds its place in data of several lines',
    ': hello\ndata: {"usage":\ndata: {"a":1,\ndata:"b":2\ndata:\ndata: }}\nid: 4\n\n',
    ': hello\ndata: {"usage":\ndata: {"a":1,\ndata:"b":2,"cost":0.00012345\ndata:\ndata: }}\nid: 4\n\n',
  ],
];

describe('annotating a stream with its cost', () => {
  for (const [name, before, after] of TABLE) {
    it(name, () => assert.equal(annotate(before), after));
  }

  for (const text of [
    'data: [DONE]\n\n',
    'data: {"usage":null}\n\n',
    'data: {"usage":{"a":1}\n\n',
    ': x\n\n',
    'data: {}\n\n',
  ]) {
    it(`does not change ${JSON.stringify(text)}`, () => assert.equal(annotate(text), text));
  }

  it('writes the cost with 8 decimals, however small or large', () => {
    assert.match(annotate('data: {"usage":{}}\n\n', 0n), /"cost":0\.00000000\}/);
    assert.match(annotate('data: {"usage":{}}\n\n', 1_234_567_890_123n), /"cost":12345\.67890123\}/);
  });
});
