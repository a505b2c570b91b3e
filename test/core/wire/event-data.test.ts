import assert from 'node:assert/strict';
import { annotateCost, moveUsage } from '../../../core/wire/event-data';

const COST = '"cost":0.00012345';
const USAGE = 'data: {"choices":[],"usage":{"a": 1.0,"b":12345678901234567890}}\n\n';
const TEXT = '{"a": 1.0,"b":12345678901234567890}';

describe('annotating a stream with its cost', () => {
  for (const [name, before, after] of [
    [
      'adds the cost behind the last count, and changes no other byte',
      'event: message_delta\ndata: {"usage":{"output_tokens": 7 } ,"x":"\\u00e9é"}\n\n',
      `event: message_delta\ndata: {"usage":{"output_tokens": 7,${COST} } ,"x":"\\u00e9é"}\n\n`,
    ],
    ['fills an empty usage', 'data: {"usage":{}}\r\n\r\n', `data: {"usage":{${COST}}}\r\n\r\n`],
    [
      'replaces a cost that the event already has',
      'data:{"usage":{"cost":{"a":1},"tokens":12345678901234567890}}\n\n',
      `data:{"usage":{${COST},"tokens":12345678901234567890}}\n\n`,
    ],
    [
      'finds an escaped key, and only at the top level',
      'data: {"choices":[{"usage":{"a":1}}],"us\\u0061ge":{"b":2}}\n\n',
      `data: {"choices":[{"usage":{"a":1}}],"us\\u0061ge":{"b":2,${COST}}}\n\n`,
    ],
    [
      'finds its place in data of several lines',
      ': hello\ndata: {"usage":\ndata: {"a":1,\ndata:"b":2\ndata:\ndata: }}\nid: 4\n\n',
      `: hello\ndata: {"usage":\ndata: {"a":1,\ndata:"b":2,${COST}\ndata:\ndata: }}\nid: 4\n\n`,
    ],
    ...['data: [DONE]\n\n', 'data: {"usage":null}\n\n', 'data: {"usage":{"a":1}\n\n', ': x\n\n'].map(
      (text) => [`does not change ${JSON.stringify(text)}`, text, text] as const,
    ),
  ] as const)
    it(name, () => assert.equal(annotateCost(Buffer.from(before), 12_345n).toString(), after));
});

describe('moving usage from one event into another', () => {
  for (const [name, from, into, wanted] of [
    [
      'adds the usage as the last member, and changes no other byte',
      USAGE,
      'data: {"id":"\\u00e9é", "choices" : [] }\n\n',
      `data: {"id":"\\u00e9é", "choices" : [],"usage":${TEXT} }\n\n`,
    ],
    [
      'takes the place of a null',
      USAGE,
      'data: {"usage":null,"x":[]}\r\n\r\n',
      `data: {"usage":${TEXT},"x":[]}\r\n\r\n`,
    ],
    ['fills an empty object', USAGE, 'data: {}\n\n', `data: {"usage":${TEXT}}\n\n`],
    [
      'finds its place in data of several lines, and joins lines into one',
      'id: 7\ndata: {"usage":{"a":\ndata: 1,\r\ndata:"b":2}\ndata: }\n\n',
      ': hello\ndata: {"choices":[\ndata: ]\ndata:}\nid: 4\n\n',
      ': hello\ndata: {"choices":[\ndata: ],"usage":{"a": 1, "b":2}\ndata:}\nid: 4\n\n',
    ],
    ['has none from an event without usage', 'data: {"choices":[]}\n\n', 'data: {}\n\n', undefined],
    ['has no place in an event that is no JSON object', USAGE, 'data: {"half":\n\n', undefined],
  ] as const)
    it(name, () => assert.equal(moveUsage(Buffer.from(from), Buffer.from(into))?.toString(), wanted));
});
