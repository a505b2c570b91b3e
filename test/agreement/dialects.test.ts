import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { TRANSLATED } from '../../core/catalog/protocols';
import { CHAT_TABLE } from '../../core/protocols/chat/request';
import { EMBEDDINGS_TABLE } from '../../core/protocols/embeddings/request';
import { MESSAGES_TABLE } from '../../core/protocols/messages/request';
import type { RequestTable, TranslatedRow } from '../../core/protocols/request-table';
import { REQUEST_TABLES, toolRow } from '../../core/protocols/request-tables';
import { RESPONSES_TABLE } from '../../core/protocols/responses/request';
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

function withoutTool(table: RequestTable, types: readonly string[]): string[] {
  return types.filter((type) => toolRow(table, type) === undefined);
}

describe("the tables of request members and the vendors' published types", () => {
  it('agree on every member of a Messages request', () => {
    const members = bodyMembers(MESSAGES_TYPES, 'MessageCreateParamsBase');
    expect(members).to.include.members(['thread', 'mcp_servers', 'tools']).and.have.length.above(20);
    expect(members.filter((name) => !(name in MESSAGES_TABLE.members))).to.deep.equal([]);
  });

  it('agree on every content block and tool of a Messages request', () => {
    const blocks = typesIn(MESSAGES_TYPES, 'BetaContentBlockParam');
    expect(blocks).to.have.length.above(20);
    expect(blocks.filter((type) => !(type in MESSAGES_TABLE.parts))).to.deep.equal([]);
    const tools = typesIn(MESSAGES_TYPES, 'BetaToolUnion');
    expect(tools).to.have.length.above(20);
    expect(withoutTool(MESSAGES_TABLE, tools)).to.deep.equal([]);
  });

  it('agree on every member of a Chat request', () => {
    const members = bodyMembers(CHAT_TYPES, 'ChatCompletionCreateParamsBase');
    expect(members).to.include.members(['prediction', 'web_search_options']).and.have.length.above(30);
    expect(members.filter((name) => !(name in CHAT_TABLE.members))).to.deep.equal([]);
  });

  it('agree on every content part and tool of a Chat request', () => {
    const parts = typesIn(CHAT_TYPES, 'ChatCompletionContentPart');
    expect(parts).to.include.members(['image_url', 'file']);
    expect(parts.filter((type) => !(type in CHAT_TABLE.parts))).to.deep.equal([]);
    expect(withoutTool(CHAT_TABLE, typesIn(CHAT_TYPES, 'ChatCompletionTool'))).to.deep.equal([]);
  });

  it('agree on every member of a Responses request, including one that compacts', () => {
    const members = ['ResponseCreateParamsBase', 'ResponseCompactParams'].flatMap((name) =>
      bodyMembers(RESPONSES_TYPES, name),
    );
    expect(members).to.include.members(['previous_response_id', 'max_output_tokens']).and.have.length.above(30);
    expect(members.filter((name) => !(name in RESPONSES_TABLE.members))).to.deep.equal([]);
  });

  it('agree on every item, content part and tool of a Responses request', () => {
    const items = ['ResponseInputItem', 'ResponseContent', 'ResponseFunctionCallOutputItem'].flatMap((union) =>
      typesIn(RESPONSES_TYPES, union),
    );
    expect(items).to.include.members(['item_reference', 'input_file', 'compaction']).and.have.length.above(35);
    expect(items.filter((type) => !(type in { ...RESPONSES_TABLE.items, ...RESPONSES_TABLE.parts }))).to.deep.equal([]);
    const tools = typesIn(RESPONSES_TYPES, 'Tool');
    expect(tools).to.include.members(['web_search', 'mcp']).and.have.length.above(15);
    expect(withoutTool(RESPONSES_TABLE, tools)).to.deep.equal([]);
  });

  it('agree on every member of an Embeddings request', () => {
    const members = bodyMembers(EMBEDDINGS_TYPES, 'EmbeddingCreateParams');
    expect(members).to.have.members(['input', 'model', 'dimensions', 'encoding_format', 'user']);
    expect(members.filter((name) => !(name in EMBEDDINGS_TABLE.members))).to.deep.equal([]);
  });
});

describe('the tables of request members', () => {
  /** Types that the reader of the item around them translates. */
  const INSIDE = ['summary_text', 'reasoning_text'];

  for (const protocol of TRANSLATED) {
    const { members, items = {}, parts, tools } = REQUEST_TABLES[protocol];

    it(`say how everything in a ${protocol} request is translated`, () => {
      const rows = Object.entries<TranslatedRow>({ ...members, ...items, ...parts, ...tools });
      expect(rows.flatMap(([name, { translation }]) => (translation ? [] : [name]))).to.have.members(
        INSIDE.filter((type) => type in parts),
      );
    });
  }
});
