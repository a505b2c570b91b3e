import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { PROTOCOL_NAMES, type Protocol, TRANSLATED } from '../../core/catalog/protocols';
import type { TranslatedRow } from '../../core/protocols/request-table';
import { memberRow, REQUEST_TABLES, toolRow } from '../../core/protocols/request-tables';
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
function bodyMembers(types: string, ...names: readonly string[]): string[] {
  const text = names.map((name) => interfaceOf(types, name)).join();
  return [...text.matchAll(/(\/\*\*(?:[^*]|\*(?!\/))*\*\/)?\n {4}([a-z_]+)\??:/g)]
    .filter(([, comment = '']) => !comment.includes('Header param'))
    .map(([, , member = '']) => member);
}

/** Lists the values of `type` of every interface in a union. */
function typesIn(types: string, ...unions: readonly string[]): string[] {
  const members = unions.flatMap(
    (name) => new RegExp(`export type ${name} = ([^;]+);`).exec(types)?.[1]?.split(' | ') ?? [],
  );
  return members.flatMap((name) => {
    const [, values = ''] = /\n\s+type\??: ([^;]+);/.exec(interfaceOf(types, name.split('.').pop() ?? '')) ?? [];
    return [...values.matchAll(/'([a-z0-9_]+)'/g)].map(([, value = '']) => value);
  });
}

/** What a vendor publishes, and what the lists must at least have. */
type Published = Readonly<Record<'members' | 'known', string[]> & Partial<Record<'parts' | 'tools', string[]>>>;

const PUBLISHED: Readonly<Record<Protocol, Published>> = {
  messages: {
    members: bodyMembers(MESSAGES_TYPES, 'MessageCreateParamsBase'),
    parts: typesIn(MESSAGES_TYPES, 'BetaContentBlockParam'),
    tools: typesIn(MESSAGES_TYPES, 'BetaToolUnion'),
    known: ['thread', 'mcp_servers', 'tools', 'tool_use', 'document', 'web_search_20250305'],
  },
  chat: {
    members: bodyMembers(CHAT_TYPES, 'ChatCompletionCreateParamsBase'),
    parts: typesIn(CHAT_TYPES, 'ChatCompletionContentPart'),
    tools: typesIn(CHAT_TYPES, 'ChatCompletionTool'),
    known: ['prediction', 'web_search_options', 'image_url', 'file', 'function'],
  },
  responses: {
    members: bodyMembers(RESPONSES_TYPES, 'ResponseCreateParamsBase', 'ResponseCompactParams'),
    parts: typesIn(RESPONSES_TYPES, 'ResponseInputItem', 'ResponseContent', 'ResponseFunctionCallOutputItem'),
    tools: typesIn(RESPONSES_TYPES, 'Tool'),
    known: ['previous_response_id', 'item_reference', 'input_file', 'compaction', 'web_search', 'mcp'],
  },
  embeddings: {
    members: bodyMembers(EMBEDDINGS_TYPES, 'EmbeddingCreateParams'),
    known: ['input', 'model', 'dimensions', 'encoding_format', 'user'],
  },
};

describe('the tables of request members', () => {
  for (const protocol of PROTOCOL_NAMES) {
    const { members, parts = [], tools = [], known } = PUBLISHED[protocol];
    const table = REQUEST_TABLES[protocol];

    it(`have every member, content part and tool that the vendor publishes for a ${protocol} request`, () => {
      expect([...members, ...parts, ...tools]).to.include.members(known);
      expect(members.filter((name) => memberRow(table, name) === undefined)).to.deep.equal([]);
      expect(parts.filter((type) => !(type in { ...table.items, ...table.parts }))).to.deep.equal([]);
      expect(tools.filter((type) => toolRow(table, type) === undefined)).to.deep.equal([]);
    });
  }

  for (const protocol of TRANSLATED)
    it(`state how the gateway translates every member, content part and tool of a ${protocol} request`, () => {
      const { members, items, parts, tools } = REQUEST_TABLES[protocol];
      const rows = Object.entries<TranslatedRow>({ ...members, ...items, ...parts, ...tools });
      const unsaid = rows.flatMap(([name, { translation }]) => (translation === undefined ? name : []));
      // The reader of the item around these translates them.
      expect(unsaid).to.have.members(protocol === 'responses' ? ['summary_text', 'reasoning_text'] : []);
    });
});
