import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { CHAT } from '../../core/protocols/chat';
import { CHAT_DIALECT } from '../../core/protocols/chat/members';
import { RULES as CHAT_RULES } from '../../core/protocols/chat/rules';
import type { ClientDialect } from '../../core/protocols/client-dialect';
import type { Dialect } from '../../core/protocols/dialect';
import { toolRule } from '../../core/protocols/dialects';
import { EMBEDDINGS_DIALECT } from '../../core/protocols/embeddings/request';
import { MESSAGES } from '../../core/protocols/messages';
import { MESSAGES_DIALECT } from '../../core/protocols/messages/members';
import { RULES as MESSAGES_RULES } from '../../core/protocols/messages/rules';
import { RESPONSES } from '../../core/protocols/responses';
import { RESPONSES_DIALECT } from '../../core/protocols/responses/members';
import { RULES as RESPONSES_RULES } from '../../core/protocols/responses/rules';
import type { Rules } from '../../core/protocols/rule';
import { PROJECT } from '../support/sources';

const MESSAGES_TYPES = typesOf('@anthropic-ai/sdk/resources/beta/messages/messages.d.ts');
const CHAT_TYPES = typesOf('openai/resources/chat/completions/completions.d.ts');
const EMBEDDINGS_TYPES = typesOf('openai/resources/embeddings.d.ts');
const RESPONSES_TYPES = typesOf('openai/resources/responses/responses.d.ts');

function typesOf(file: string): string {
  return readFileSync(`${PROJECT}/node_modules/${file}`, 'utf8');
}

/** Returns the text between the braces of an interface. */
function interfaceOf(types: string, name: string): string {
  const start = types.search(new RegExp(`^ *(?:export )?interface ${name} \\{`, 'm'));
  if (start === -1) throw new Error(`there is no interface ${name}`);
  const indent = /^ */.exec(types.slice(start))?.[0] ?? '';
  return types.slice(start, types.indexOf(`\n${indent}}`, start));
}

/** Lists the members of the body. A comment in the types marks those that the SDK sends as headers. */
function bodyMembers(types: string, name: string): string[] {
  const text = interfaceOf(types, name);
  return [...text.matchAll(/(\/\*\*(?:[^*]|\*(?!\/))*\*\/)?\n {4}([a-z_]+)\??:/g)]
    .filter(([, comment = '']) => !comment.includes('Header param'))
    .map(([, , member = '']) => member);
}

/** Lists the values of `type` of every interface in a union. */
function typesIn(types: string, union: string): string[] {
  const members = new RegExp(`export type ${union} = ([^;]+);`).exec(types)?.[1]?.split(' | ') ?? [];
  return members.flatMap((name) => {
    const [, values = ''] = /\n\s+type\??: ([^;]+);/.exec(interfaceOf(types, name.split('.').pop() ?? '')) ?? [];
    return [...values.matchAll(/'([a-z0-9_]+)'/g)].map(([, value = '']) => value);
  });
}

function withoutTool(dialect: Dialect, types: readonly string[]): string[] {
  return types.filter((type) => toolRule(dialect, type) === undefined);
}

describe("the tables of request members and the vendors' published types", () => {
  it('agree on every member of a Messages request', () => {
    const members = bodyMembers(MESSAGES_TYPES, 'MessageCreateParamsBase');
    expect(members).to.include.members(['thread', 'mcp_servers', 'tools']).and.have.length.above(20);
    expect(members.filter((name) => !(name in MESSAGES_DIALECT.members))).to.deep.equal([]);
  });

  it('agree on every content block and tool of a Messages request', () => {
    const blocks = typesIn(MESSAGES_TYPES, 'BetaContentBlockParam');
    expect(blocks).to.have.length.above(20);
    expect(blocks.filter((type) => !(type in MESSAGES_DIALECT.parts))).to.deep.equal([]);
    const tools = typesIn(MESSAGES_TYPES, 'BetaToolUnion');
    expect(tools).to.have.length.above(20);
    expect(withoutTool(MESSAGES_DIALECT, tools)).to.deep.equal([]);
  });

  it('agree on every member of a Chat request', () => {
    const members = bodyMembers(CHAT_TYPES, 'ChatCompletionCreateParamsBase');
    expect(members).to.include.members(['prediction', 'web_search_options']).and.have.length.above(30);
    expect(members.filter((name) => !(name in CHAT_DIALECT.members))).to.deep.equal([]);
  });

  it('agree on every content part and tool of a Chat request', () => {
    const parts = typesIn(CHAT_TYPES, 'ChatCompletionContentPart');
    expect(parts).to.include.members(['image_url', 'file']);
    expect(parts.filter((type) => !(type in CHAT_DIALECT.parts))).to.deep.equal([]);
    expect(withoutTool(CHAT_DIALECT, typesIn(CHAT_TYPES, 'ChatCompletionTool'))).to.deep.equal([]);
  });

  it('agree on every member of a Responses request, including one that compacts', () => {
    const members = ['ResponseCreateParamsBase', 'ResponseCompactParams'].flatMap((name) =>
      bodyMembers(RESPONSES_TYPES, name),
    );
    expect(members).to.include.members(['previous_response_id', 'max_output_tokens']).and.have.length.above(30);
    expect(members.filter((name) => !(name in RESPONSES_DIALECT.members))).to.deep.equal([]);
  });

  it('agree on every item, content part and tool of a Responses request', () => {
    const items = ['ResponseInputItem', 'ResponseContent', 'ResponseFunctionCallOutputItem'].flatMap((union) =>
      typesIn(RESPONSES_TYPES, union),
    );
    expect(items).to.include.members(['item_reference', 'input_file', 'compaction']).and.have.length.above(35);
    expect(items.filter((type) => !(type in RESPONSES_DIALECT.parts))).to.deep.equal([]);
    const tools = typesIn(RESPONSES_TYPES, 'Tool');
    expect(tools).to.include.members(['web_search', 'mcp']).and.have.length.above(15);
    expect(withoutTool(RESPONSES_DIALECT, tools)).to.deep.equal([]);
  });

  it('agree on every member of an Embeddings request', () => {
    const members = bodyMembers(EMBEDDINGS_TYPES, 'EmbeddingCreateParams');
    expect(members).to.have.members(['input', 'model', 'dimensions', 'encoding_format', 'user']);
    expect(members.filter((name) => !(name in EMBEDDINGS_DIALECT.members))).to.deep.equal([]);
  });
});

interface Translated {
  readonly dialect: ClientDialect;
  readonly members: Dialect;
  readonly rules: Rules;
}

const TRANSLATED: Readonly<Record<string, Translated>> = {
  messages: { dialect: MESSAGES, members: MESSAGES_DIALECT, rules: MESSAGES_RULES },
  chat: { dialect: CHAT, members: CHAT_DIALECT, rules: CHAT_RULES },
  responses: { dialect: RESPONSES, members: RESPONSES_DIALECT, rules: RESPONSES_RULES },
};

/** Types without a rule, because the reader of the enclosing item handles them. */
const INSIDE = ['summary_text', 'reasoning_text'];

describe('the rules of translation and the tables of request members', () => {
  for (const [name, { dialect, members, rules }] of Object.entries(TRANSLATED)) {
    it(`agree on every member of a ${name} request, in both directions`, () => {
      const ruled = rules.all.map(({ member }) => member);
      expect(new Set(ruled)).to.have.property('size', ruled.length);
      expect(ruled.filter((member) => !/[.[]/.test(member))).to.have.members(Object.keys(members.members));
    });

    it(`agree on every part and tool of a ${name} request, in both directions`, () => {
      const typesOf = (place: string) =>
        rules.all.flatMap(({ member }) => {
          const [, at, type = ''] = /^(\w+)\[([^\]]+)\]$/.exec(member) ?? [];
          return at === place ? [type] : [];
        });
      const parts = Object.keys(members.parts).filter((type) => !INSIDE.includes(type));
      expect([...typesOf('content'), ...typesOf('input')]).to.have.members(parts);
      const tools = Object.entries(members.tools).flatMap(([type, tool]) =>
        'forms' in tool && rules.of(`tools[${type}]`) === undefined ? Object.keys(tool.forms) : [type],
      );
      expect(typesOf('tools')).to.have.members(tools);
    });

    it(`name every member of a ${name} request as the table does`, () => {
      const named = Object.values(dialect.names).map((each) => each.split(/[.[]/)[0] ?? '');
      const known = [...Object.keys(members.members), ...Object.keys(members.parts)];
      expect(named.filter((each) => !known.includes(each))).to.deep.equal([]);
    });
  }
});
