import { expect } from 'chai';
import { asArray, type JsonObject, memberOf } from '../../../core/base/json-values';
import type { Conversation } from '../../../core/catalog/conversation';
import { CHAT, MESSAGES, RESPONSES } from '../../../core/protocols/client-dialects';
import { seal } from '../../../core/protocols/seal';
import { callOf, writtenCall } from '../../support/golden';

const called = { id: 'c1', type: 'function', function: { name: 't', arguments: '{}' } };
const signed = (signature: string) => ({ ...called, extra_content: { google: { thought_signature: signature } } });
const thought = { type: 'reasoning.text', format: 'anthropic-claude-v1', index: 0 };
const hidden = { type: 'reasoning.encrypted', data: 'HIDDEN', format: 'anthropic-claude-v1', index: 1 };

/** What vendors that speak Chat put into the deltas of an answer, and the members of the next request in which they want it back. */
const TURNS: Readonly<Record<string, { readonly deltas: readonly JsonObject[]; readonly back: JsonObject }>> = {
  'the signature of a call': {
    deltas: [{ tool_calls: [{ index: 0, ...signed('SIGNED') }] }],
    back: { tool_calls: [signed('SIGNED')] },
  },
  'the signature of the first of two calls': {
    deltas: [{ tool_calls: [{ index: 0, ...signed('SIGNED') }] }, { tool_calls: [{ index: 1, ...called, id: 'c2' }] }],
    back: { tool_calls: [signed('SIGNED'), { ...called, id: 'c2' }] },
  },
  'blocks of reasoning': {
    deltas: [
      { reasoning: 'I should', reasoning_details: [{ ...thought, text: 'I should' }] },
      { reasoning: ' look.', reasoning_details: [{ ...thought, text: ' look.' }] },
      { reasoning_details: [{ ...thought, text: '', signature: 'SIGNED' }] },
      { reasoning_details: [hidden] },
      { content: 'Hello' },
    ],
    back: { reasoning_details: [{ ...thought, text: 'I should look.', signature: 'SIGNED' }, hidden] },
  },
  'a block of reasoning that is encrypted': {
    deltas: [{ reasoning_details: [hidden] }, { content: 'Hello' }],
    back: { reasoning_details: [hidden] },
  },
};

/** How each client sends an answer back. */
const CLIENTS = {
  messages: {
    dialect: MESSAGES,
    request: (answer: JsonObject) => ({
      messages: [
        { role: 'user', content: 'Hello' },
        { role: 'assistant', content: answer['content'] },
        { role: 'user', content: 'Go on' },
      ],
      max_tokens: 5,
    }),
  },
  responses: {
    dialect: RESPONSES,
    request: (answer: JsonObject) => ({
      input: [{ role: 'user', content: 'Hello' }, ...asArray(answer['output']), { role: 'user', content: 'Go on' }],
    }),
  },
};

for (const [client, { dialect, request }] of Object.entries(CLIENTS))
  describe(`The data that a Chat vendor wants back in the next request of a client of ${client}`, () => {
    /** Returns the members of the assistant's message in the request that follows an answer. */
    function nextOf(deltas: readonly JsonObject[], upstream: string): JsonObject {
      const reader = CHAT.openReader();
      const chunks = [...deltas.map((delta) => ({ index: 0, delta })), { index: 0, delta: {}, finish_reason: 'stop' }];
      const events = [
        ...chunks.flatMap((choice) => reader.event({ name: undefined, data: JSON.stringify({ choices: [choice] }) })),
        ...reader.end(),
      ];
      const sealed = (value: string) => seal({ upstream: 'up-1', dialect: 'chat', value });
      const answer = dialect.openWriter({ ...writtenCall({}), seal: sealed }).body(events);
      const next: Conversation = dialect.readRequest(request(answer as JsonObject) as JsonObject);
      return memberOf(CHAT.writeRequest(callOf(next, { upstream })), 'messages', 1) as JsonObject;
    }

    for (const [what, { deltas, back }] of Object.entries(TURNS)) {
      it(`are sent back to the upstream that sent the data: ${what}`, () => {
        expect(nextOf(deltas, 'up-1')).to.deep.include(back);
      });

      it(`are never sent to another upstream: ${what}`, () => {
        expect(JSON.stringify(nextOf(deltas, 'up-2'))).to.not.match(/SIGNED|HIDDEN/);
      });
    }
  });
