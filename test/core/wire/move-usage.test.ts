import assert from 'node:assert/strict';
import { moveUsage } from '../../../core/wire/move-usage';

const USAGE = 'data: {"choices":[],"usage":{"a": 1.0,"b":12345678901234567890}}\n\n';
const TEXT = '{"a": 1.0,"b":12345678901234567890}';

/** The event with the usage, the event that receives it, and both results. */
const TABLE: readonly [string, string, string, string][] = [
  [
    'adds the usage as the last member, and changes no other byte',
    USAGE,
    'data: {"id":"\\u00e9é", "choices" : [{"finish_reason":"stop"}] }\n\n',
    `data: {"id":"\\u00e9é", "choices" : [{"finish_reason":"stop"}],"usage":${TEXT} }\n\n`,
  ],
  [
    'takes the place of a null',
    USAGE,
    'data: {"usage":null,"choices":[]}\r\n\r\n',
    `data: {"usage":${TEXT},"choices":[]}\r\n\r\n`,
  ],
  [
    'takes the place of running counts',
    USAGE,
    'data:{"us\\u0061ge":{"usage":{}},"x":{"usage":null}}\n\n',
    `data:{"us\\u0061ge":${TEXT},"x":{"usage":null}}\n\n`,
  ],
  ['fills an empty object', USAGE, 'data: {}\n\n', `data: {"usage":${TEXT}}\n\n`],
  [
    'finds its place in data of several lines, and joins lines into one',
    'id: 7\ndata: {"usage":{"a":\ndata: 1,\r\ndata:"b":2}\ndata: }\n\n',
    ': hello\ndata: {"choices":[\ndata: ]\ndata:}\nid: 4\n\n',
    ': hello\ndata: {"choices":[\ndata: ],"usage":{"a": 1, "b":2}\ndata:}\nid: 4\n\n',
  ],
  [
    'replaces a usage that stands in several lines',
    USAGE,
    'data: {"usage":{\ndata: "a":2},\ndata: "x":1}\n\n',
    `data: {"usage":${TEXT},\ndata: "x":1}\n\n`,
  ],
];

describe('moving usage from one event into another', () => {
  for (const [name, from, into, wanted] of TABLE) {
    it(name, () => assert.equal(moveUsage(Buffer.from(from), Buffer.from(into))?.toString(), wanted));
  }

  for (const [from, into] of [
    ['data: {"choices":[]}\n\n', 'data: {}\n\n'],
    ['data: [DONE]\n\n', 'data: {}\n\n'],
    [USAGE, 'data: [DONE]\n\n'],
    [USAGE, 'data: {"half":\n\n'],
    [USAGE, ': comment\n\n'],
  ] as const) {
    it(`changes nothing between ${JSON.stringify(from)} and ${JSON.stringify(into)}`, () =>
      assert.equal(moveUsage(Buffer.from(from), Buffer.from(into)), undefined));
  }
});
