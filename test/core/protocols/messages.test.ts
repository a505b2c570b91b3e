import { expect } from 'chai';
import type { JsonObject } from '../../../core/base/json-values';
import type { AnswerEvent } from '../../../core/catalog/answer';
import { NotTranslatable } from '../../../core/catalog/conversation';
import { MESSAGES } from '../../../core/protocols/client-dialects';
import { MESSAGES_RULES } from '../../../core/protocols/messages/request';
import { unseal } from '../../../core/protocols/seal';
import { writtenCall } from '../../support/golden';

describe('the dialect messages', () => {
  it('refuses or drops members according to its rules, and names each refused member', () => {
    const given = { model: 'm', messages: [] };
    for (const { member, action } of MESSAGES_RULES.all.filter((rule) => /^\w+$/.test(rule.member))) {
      const read = () => MESSAGES.readRequest({ ...given, [member]: { of: 'the vendor' } });
      if (action === 'refused') expect(read, member).to.throw(`\`${member}\``);
      if (action === 'dropped') expect(read(), member).to.deep.equal(MESSAGES.readRequest(given));
    }
  });

  it('refuses only the blocks and tools that its rules exclude', () => {
    const isRefused = (place: string, request: JsonObject) => {
      try {
        MESSAGES.readRequest(request);
        return false;
      } catch (error) {
        if (!(error instanceof NotTranslatable)) throw error;
        return error.what === `${place}.type`;
      }
    };
    for (const { member, action } of MESSAGES_RULES.all) {
      const [, place, type] = /^(content|tools)\[(.+)\]$/.exec(member) ?? [];
      if (type === undefined) continue;
      const inResult = { type: 'tool_result', tool_use_id: 't', content: [{ type }] };
      const sides = [
        ...['user', 'assistant'].map((role) => ['', { role, content: [{ type }] }] as const),
        ['.content[0]', { role: 'user', content: [inResult] }] as const,
      ];
      const refused =
        place === 'tools'
          ? isRefused('tools[0]', { messages: [], tools: [{ type }] })
          : sides.every(([inside, message]) => isRefused(`messages[0].content[0]${inside}`, { messages: [message] }));
      expect(refused, member).to.equal(action === 'refused');
    }
  });

  it('returns a signature only to the upstream that made it', () => {
    const value = JSON.stringify({ redacted_thinking: 'Emw' });
    const events: AnswerEvent[] = [
      { kind: 'open', at: 0, choice: 0, part: { kind: 'reasoning' } },
      { kind: 'sign', at: 0, value: 'EqQB' },
      { kind: 'close', at: 0 },
      { kind: 'open', at: 1, choice: 0, part: { kind: 'reasoning' } },
      { kind: 'sign', at: 1, value },
      { kind: 'close', at: 1 },
    ];
    const { content } = MESSAGES.openWriter(writtenCall({})).body(events);
    const messages = [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content },
    ];
    const [, turn] = MESSAGES.readRequest({ messages }).turns;
    const signed = { upstream: 'up-1', dialect: 'other' };
    expect(turn?.parts.map((part) => 'signature' in part && part.signature)).to.deep.equal([
      { ...signed, value: 'EqQB' },
      { ...signed, value },
    ]);
  });

  it('marks thinking that has no signature, so that no upstream receives that thinking', () => {
    const { content } = MESSAGES.openWriter(writtenCall({})).body([
      { kind: 'open', at: 0, choice: 0, part: { kind: 'reasoning' } },
      { kind: 'add', at: 0, text: 'Hm.' },
      { kind: 'close', at: 0 },
    ]);
    const [block] = content as readonly JsonObject[];
    expect(unseal(block?.['signature'])).to.include({ upstream: 'none' });
  });

  it('derives the type of an error from its HTTP status', () => {
    const typed = (status: number, error = {}) =>
      (MESSAGES.writeError({ message: 'Sorry.', ...error }, status, 'req-1')['error'] as JsonObject)['type'];
    expect([400, 401, 404, 413, 418, 429, 500, 503].map((status) => typed(status))).to.deep.equal([
      'invalid_request_error',
      'authentication_error',
      'not_found_error',
      'request_too_large',
      'invalid_request_error',
      'rate_limit_error',
      'api_error',
      'overloaded_error',
    ]);
    expect(typed(200, { type: 'constructor', code: 'insufficient_quota' })).to.equal('billing_error');
    expect(typed(200, { type: 'constructor' })).to.equal('api_error');
  });

  it('throws an error for a tool call whose input is not valid JSON', () => {
    const events: AnswerEvent[] = [
      { kind: 'open', at: 0, choice: 0, part: { kind: 'tool_call', id: 'c', name: 'n' } },
      { kind: 'add', at: 0, text: '{"a":' },
      { kind: 'close', at: 0 },
      { kind: 'finish', choice: 0, reason: 'tool_calls' },
    ];
    expect(() => MESSAGES.openWriter(writtenCall({})).body(events)).to.throw('is not a JSON object');
  });
});
