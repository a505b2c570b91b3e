import { expect } from 'chai';
import { toCurrent } from '../../../core/catalog/adapters';
import type { AnswerEvent } from '../../../core/catalog/answer';
import { guardAdapter } from '../../../core/catalog/guarded-adapter';
import type { AnyAdapter } from '../../../core/catalog/upstream';
import { Translation } from '../../../core/dialects/translation';
import { EventReader } from '../../../core/wire/event-reader';
import chat from '../../../plugins/upstreams/chat';
import gemini from '../../../plugins/upstreams/gemini';
import messages from '../../../plugins/upstreams/messages';
import { sampleCandidate } from '../../support/catalog-samples';
import { callOf } from '../../support/golden';

const OWN = { ...gemini, name: 'own', answer: () => ({ event: () => BARE, body: () => BARE, end: () => [] }) };
const BARE: readonly AnswerEvent[] = [{ is: 'begin' }, { is: 'end' }];

const TALK = { instructions: [], turns: [], tools: [], choices: 1, stream: true, stop: [] };

function readerOf(given: AnyAdapter, protocol: 'messages' | 'chat' | 'responses', dialect?: 'messages' | 'chat') {
  const adapter = guardAdapter(toCurrent(given));
  const candidate = { ...sampleCandidate('up-1'), adapter, dialect: dialect ?? ('own' as const) };
  const call = { requestId: 'req-1', protocol, asked: callOf(TALK, {}), request: {} };
  return new EventReader(adapter, 1, undefined, new Translation(candidate, call));
}

const events = (...all: readonly unknown[]) =>
  Buffer.from(all.map((each) => `data: ${typeof each === 'string' ? each : JSON.stringify(each)}\n\n`).join(''));
const delta = (content: string, finish_reason: string | null = null) => ({
  id: 'c',
  choices: [{ index: 0, delta: { content }, finish_reason }],
});
const OVERLOADED = { error: { message: 'Overloaded.', type: 'server_error' } };

describe('the translation of a stream', () => {
  it('tells of an error with the last event that the client is given for it', () => {
    const said = [
      { type: 'message_start', message: {} },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hi' } },
    ];
    const reader = readerOf(messages, 'responses', 'messages');
    reader.read(events(...said));
    const read = reader.read(events({ type: 'error', ...OVERLOADED }));
    expect(read.map(({ event, note }) => [event.name, note.error !== undefined])).to.deep.equal([
      ['response.output_text.done', false],
      ['response.content_part.done', false],
      ['response.output_item.done', false],
      ['response.failed', true],
    ]);
  });

  it('gives a stop reason where the upstream ends without one', () => {
    const reader = readerOf(chat, 'messages', 'chat');
    const [last, end] = reader.read(events(delta('Hi'), '[DONE]')).slice(-2);
    expect(last?.event.data).to.include('"stop_reason":"end_turn"');
    expect([end?.event.name, end?.isWhole]).to.deep.equal(['message_stop', true]);
  });

  it('takes an own dialect that ends without a stop reason for broken', () => {
    const reader = readerOf(OWN, 'chat');
    expect(() => reader.read(events({}))).to.throw('the adapter "own" failed in event');
    expect(reader.isWhole).to.equal(false);
  });

  for (const [what, data] of [
    ['reports an error', OVERLOADED],
    ['sends no JSON', '{"half'],
  ] as const)
    it(`ends a whole answer whose upstream then ${what}`, () => {
      const reader = readerOf(chat, 'messages', 'chat');
      const read = reader.read(events(delta('Hi', 'stop'), data));
      expect(read.every(({ note }) => note.error === undefined && note.malformed === undefined)).to.equal(true);
      expect(reader.rest()?.toString()).to.include('message_stop');
    });

  it('ends a whole answer behind which the adapter fails', () => {
    const reader = readerOf(gemini, 'chat');
    const part = (text: string, more: object) => ({
      candidates: [{ index: 0, content: { parts: [{ text }] }, ...more }],
    });
    reader.read(events(part('Hi', { finishReason: 'STOP' })));
    expect(() => reader.read(events(part('there', {})))).to.throw('the adapter "gemini" failed in event');
    expect([reader.isWhole, reader.rest()?.toString()]).to.deep.equal([true, 'data: [DONE]\n\n']);
  });
});
