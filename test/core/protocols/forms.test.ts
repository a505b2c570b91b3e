import { expect } from 'chai';
import type { Conversation, Part, Tool, Turn } from '../../../core/catalog/conversation';
import { CHAT, MESSAGES, RESPONSES } from '../../../core/protocols/client-dialects';
import { writeConverseRequest as writeConverse } from '../../../core/protocols/converse/request';
import { writeGeminiRequest as writeGemini } from '../../../core/protocols/gemini/request';
import { callOf, type Subject } from '../../support/golden';

const TARGETS: Readonly<Record<string, Subject['writeRequest']>> = {
  messages: MESSAGES.writeRequest,
  chat: CHAT.writeRequest,
  responses: RESPONSES.writeRequest,
  gemini: writeGemini,
  converse: writeConverse,
};

/** The longest ids that vendors take, and the targets that refuse a text of white space alone. */
const MAX_ID_LENGTHS: Readonly<Record<string, number>> = { chat: 40 };
const REFUSES_BLANK: ReadonlySet<string> = new Set(['messages', 'converse']);

const text = (said: string) => ({ kind: 'text', text: said }) as const;
const call = (id: string, name = 't') => ({ kind: 'tool_call', id, name, input: '{}' }) as const;
const result = (id: string) => ({ kind: 'tool_result', id, parts: [text('1')] }) as const;
const user = (...parts: readonly Part[]): Turn => ({ role: 'user', parts });
const assistant = (...parts: readonly Part[]): Turn => ({ role: 'assistant', parts });
const tool = (name: string, schema?: unknown): Tool => ({ name, input: 'json', schema });

/** Returns the values of members with one of the names, in the order of the body. */
function valuesOf(value: unknown, names: readonly string[]): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) => [
    ...(names.includes(name) ? [member].flat() : []),
    ...valuesOf(member, names),
  ]);
}

const SCHEMAS = ['parameters', 'input_schema', 'parametersJsonSchema', 'json'];
const IDS = ['id', 'call_id', 'tool_use_id', 'tool_call_id', 'toolUseId'];

for (const [target, write] of Object.entries(TARGETS)) {
  const written = (given: Partial<Conversation>) =>
    write(callOf({ turns: [user(text('Hello'))], ...given } as Conversation, {}));

  describe(`a request written for ${target}`, () => {
    it("has a unique id for each tool call, even if the client repeats an id, and each result has its call's id", () => {
      const turns = [
        user(text('Hello')),
        ...[assistant(call('c'), call('c')), user(result('c'), result('c'))],
        ...[assistant(call('c')), user(result('c'))],
      ];
      const [first, second, , , third] = valuesOf(written({ turns }), IDS);
      expect(new Set([first, second, third])).to.have.lengthOf(3);
      expect(valuesOf(written({ turns }), IDS)).to.deep.equal([first, second, first, second, third, third]);
    });

    for (const long of ['mcp__server__'.repeat(8), 'a.b', '7', 'Straße', ''])
      it(`contains a name and an id that vendors accept instead of "${long}"`, () => {
        const turns = [user(text('Hello')), assistant(call(long, long)), user(result(long))];
        const body = written({ turns, tools: [tool(long)], toolChoice: { tool: long } });
        const names = valuesOf(body, ['name', 'allowedFunctionNames']);
        expect(names).to.have.length.above(2);
        for (const name of names)
          expect(name)
            .to.equal(names[0])
            .and.to.match(/^[a-zA-Z_][\w-]{0,63}$/);
        const [id, answered] = valuesOf(body, IDS);
        expect(answered).to.equal(id);
        expect(id).to.have.length.within(1, MAX_ID_LENGTHS[target] ?? 64);
      });

    it('contains no empty turn and no empty text', () => {
      const blank = [assistant(text('')), user(text(' \n'), text('Hello')), { role: 'system', parts: [] } as const];
      const body = written({ instructions: [text('')], turns: [user(text('Hello')), ...blank] });
      const said = valuesOf(body, ['text', 'content', 'instructions']).filter((each) => typeof each === 'string');
      expect(said).to.have.length.above(0);
      for (const each of said) expect(REFUSES_BLANK.has(target) ? String(each).trim() : each).to.not.equal('');
      expect(JSON.stringify(body)).to.not.match(/"role":"(?:assistant|model|developer|system)"/);
    });

    for (const schema of [undefined, {}, { type: 'object' }])
      it(`has a complete object schema for the tool schema ${JSON.stringify(schema) ?? 'that is absent'}`, () => {
        const schemas = valuesOf(written({ tools: [tool('t', schema)] }), SCHEMAS);
        expect(schemas).to.deep.equal([{ type: 'object', properties: {} }]);
      });

    it('uses the registered names of media types', () => {
      const image = { kind: 'image', source: { base64: 'AAAA', mediaType: 'image/JPG; a=b' } } as const;
      const body = JSON.stringify(written({ turns: [user(image)] }));
      expect(body).to.include('jpeg').and.to.not.match(/jpg/i);
    });
  });
}

/** What models take that others of their dialect refuse, or refuse that others take. */
describe('a request written for a model of Messages', () => {
  const weakened: string[] = [];
  const written = (model: string, given: Partial<Conversation>) =>
    MESSAGES.writeRequest({
      ...callOf({ turns: [user(text('Hello'))], ...given } as Conversation, { reasoning: 'effort' }),
      model,
      weaken: (feature) => weakened.push(feature),
    });
  const tools = [tool('t')];

  it('does not force a tool call if the model refuses forced calls, and records the weaker guarantee', () => {
    for (const toolChoice of ['required', { tool: 't' }] as const) {
      weakened.length = 0;
      expect(written('claude-sonnet-4-5', { tools, toolChoice })['tool_choice']).to.not.include({ type: 'auto' });
      expect(weakened).to.deep.equal([]);
      expect(written('anthropic/claude-opus-5-5-20261101', { tools, toolChoice })['tool_choice']).to.include({
        type: 'auto',
      });
      expect(weakened).to.deep.equal(['toolChoice']);
    }
  });

  it('requests the least thinking with the setting that the model has for it', () => {
    const asked = (model: string) => {
      const { thinking, output_config: effort } = written(model, { reasoning: { effort: 'none' } });
      return { thinking, effort };
    };
    expect(asked('claude-sonnet-4-5')).to.deep.equal({ thinking: { type: 'disabled' }, effort: undefined });
    expect(asked('claude-sonnet-5-5')).to.deep.equal({ thinking: { type: 'between_tools' }, effort: undefined });
    expect(asked('claude-opus-5-5')).to.deep.equal({ thinking: undefined, effort: { effort: 'low' } });
  });

  it('has a separate system message for instructions inside the conversation only if the model accepts it', () => {
    const turns = [user(text('Hello')), { role: 'system', parts: [text('Be brief')] } as const, assistant(text('Hi'))];
    const roles = (model: string) =>
      (written(model, { turns: [...turns, user(text('Go on'))] })['messages'] as { role: string }[]).map(
        ({ role }) => role,
      );
    expect(roles('claude-opus-5')).to.deep.equal(['user', 'system', 'assistant', 'user']);
    expect(roles('claude-opus-4-5')).to.deep.equal(['user', 'assistant', 'user']);
  });

  it('is rejected if the model does not support its sampling settings', () => {
    expect(() => written('claude-opus-4-7', { temperature: 0.5 })).to.throw('one value alone');
    expect(() => written('claude-sonnet-4-5', { temperature: 0.5, topP: 0.5 })).to.throw('beside a temperature');
    expect(written('claude-sonnet-4-5', { temperature: 0.5, topP: 1 }))
      .to.include({ temperature: 0.5 })
      .and.not.have.property('top_p');
    expect(written('claude-sonnet-4', { temperature: 0.5, topP: 0.5 })).to.include({ temperature: 0.5, top_p: 0.5 });
  });
});
