import type { Conversation, Part, Tool, ToolCallPart, ToolResultPart, Turn } from '../../../core/catalog/conversation';
import type { Random } from '../../support/random';
import type { Client } from './directions';

/** Endings of words that JSON, streams and templates often mishandle. */
const ODD = [
  '',
  'Łódź',
  '"',
  '\\',
  'a\nb',
  '\r\n\r\n',
  '\u{1f600}',
  '\u2028',
  '\0',
  '[DONE]',
  'data: {}',
  '\ud800',
  '$&',
];

/** Draws a text that is recognisable wherever it arrives. */
export function word(random: Random): string {
  return `‹${random.below(1_000_000)} ${random.pick(ODD)}›`;
}

export function chance(random: Random, oneIn: number): boolean {
  return random.below(oneIn) === 0;
}

export function maybe<T>(random: Random, make: () => T, oneIn = 2): T | undefined {
  return chance(random, oneIn) ? make() : undefined;
}

export function listed<T>(random: Random, most: number, make: (at: number) => T): readonly T[] {
  return Array.from({ length: random.below(most + 1) }, (_, at) => make(at));
}

/** Draws a JSON value of at most this depth. */
export function json(random: Random, depth = 3): unknown {
  switch (random.below(depth > 0 ? 7 : 5)) {
    case 0:
      return random.pick([0, -1, 1.5, 1e21, 42]);
    case 1:
      return random.pick([null, true, false]);
    case 5:
      return listed(random, 3, () => json(random, depth - 1));
    case 6:
      return object(random, depth - 1);
    default:
      return word(random);
  }
}

export function object(random: Random, depth = 2): Record<string, unknown> {
  const names = listed(random, 3, () => random.pick(['city', 'input', 'type', 'ü', '', 'constructor', 'toString']));
  return Object.fromEntries(names.map((name) => [name, json(random, depth)]));
}

/** Draws a conversation with everything that a client of this dialect can express. */
export function randomTalk(random: Random, client: Client): Conversation {
  const tools = listed(random, 3, (at) => tool(random, client, at));
  const settings = client === 'responses' ? {} : { stop: listed(random, 6, () => word(random)) };
  return {
    instructions: listed(random, 2, () => ({ kind: 'text', text: word(random) }) as const),
    turns: turnsOf(random, client, tools),
    tools,
    choices: 1,
    stream: chance(random, 2),
    stop: [],
    ...settings,
    ...sampling(random, client),
    toolChoice: choiceOf(random, tools),
    parallelTools: maybe(random, () => chance(random, 2), 3),
    outputFormat: formatOf(random, client),
    maxTokens: client === 'messages' ? 1 + random.below(900) : maybe(random, () => 1 + random.below(900)),
    user: maybe(random, () => word(random), 4),
  };
}

function sampling(random: Random, client: Client): Partial<Conversation> {
  const common = {
    temperature: maybe(random, () => random.pick(client === 'messages' ? [0, 0.5, 1] : [0, 0.5, 1, 1.5])),
    topP: maybe(random, () => random.pick([0.5, 1]), 4),
  };
  if (client === 'messages') return { ...common, topK: maybe(random, () => 40, 4) };
  if (client === 'responses') return common;
  return {
    ...common,
    choices: chance(random, 8) ? 2 : 1,
    seed: maybe(random, () => 7, 4),
    frequencyPenalty: maybe(random, () => 0.5, 8),
    presencePenalty: maybe(random, () => -0.5, 8),
  };
}

/** Draws a tool. In Responses it may stand in a namespace, whose name is then its prefix. */
function tool(random: Random, client: Client, at: number): Tool {
  const description = maybe(random, () => word(random));
  if (client !== 'messages' && chance(random, 4)) {
    const format = maybe(random, () => ({ type: 'grammar', syntax: 'lark', definition: word(random) }));
    return { name: `text_${at}`, description, input: 'text', format };
  }
  const schema = {
    type: 'object',
    properties: { city: { type: 'string', description: word(random), enum: [json(random)] } },
    ...(chance(random, 2) && { additionalProperties: false, required: ['city'] }),
  };
  const name = client === 'responses' && chance(random, 3) ? `space__json_${at}` : `json_${at}`;
  return { name, description, input: 'json', schema, strict: maybe(random, () => chance(random, 2)) };
}

function choiceOf(random: Random, tools: readonly Tool[]): Conversation['toolChoice'] {
  if (tools.length === 0) return maybe(random, () => random.pick(['auto', 'none', 'required']), 4);
  const { name, input } = random.pick(tools);
  return maybe(random, () => random.pick(['auto', 'none', 'required', { tool: name, input }]));
}

function formatOf(random: Random, client: Client): Conversation['outputFormat'] {
  const name = word(random);
  const closed = chance(random, 2) ? { required: [name], additionalProperties: false } : {};
  const schema = { type: 'object', properties: { [name]: { const: json(random) } }, ...closed };
  if (client === 'messages') return maybe(random, () => ({ kind: 'schema', schema, strict: true }), 4);
  if (chance(random, 8)) return { kind: 'json' };
  return maybe(random, () => ({ kind: 'schema', name: 'form', schema, strict: maybe(random, () => true) }), 4);
}

function turnsOf(random: Random, client: Client, tools: readonly Tool[]): readonly Turn[] {
  const turns: Turn[] = [{ role: 'user', parts: [{ kind: 'text', text: word(random) }] }];
  for (let left = random.below(5); left > 0; left -= 1) {
    const calls = listed(random, tools.length === 0 ? 0 : 3, () => callOf(random, tools));
    const said = assistantParts(random, client, calls);
    if (said.length > 0) turns.push({ role: 'assistant', parts: said });
    if (calls.length > 0) turns.push({ role: 'user', parts: calls.map((call) => resultOf(random, client, call)) });
    if (chance(random, 4)) turns.push({ role: 'system', parts: [{ kind: 'text', text: word(random) }] });
    if (calls.length === 0 || chance(random, 3)) turns.push({ role: 'user', parts: userParts(random, client) });
  }
  return turns;
}

function assistantParts(random: Random, client: Client, calls: readonly ToolCallPart[]): readonly Part[] {
  const texts = listed(random, 2, () => ({ kind: 'text', text: chance(random, 8) ? '' : word(random) }) as const);
  const refused = client !== 'messages' && chance(random, 8) ? [{ kind: 'refusal', text: word(random) } as const] : [];
  return [...texts, ...refused, ...calls];
}

const IDS = ['', ' ', ':1', 'ü', '_x20_', '\u{1f600}'];

function callOf(random: Random, tools: readonly Tool[]): ToolCallPart {
  const { name, input } = random.pick(tools);
  const id = `call_${random.below(1_000_000)}${random.pick(IDS)}`;
  if (input === 'text') return { kind: 'tool_call', id, name, input: word(random), isText: true };
  return { kind: 'tool_call', id, name, input: JSON.stringify(object(random)) };
}

function resultOf(random: Random, client: Client, { id, isText }: ToolCallPart): ToolResultPart {
  const parts = listed(random, 2, () =>
    chance(random, 5) ? media(random, client, true) : ({ kind: 'text', text: word(random) } as const),
  );
  const isError = client === 'messages' && chance(random, 4);
  return { kind: 'tool_result', id, parts: parts as ToolResultPart['parts'], ...(isError && { isError }), isText };
}

function userParts(random: Random, client: Client): readonly Part[] {
  const parts = listed(random, 2, () =>
    chance(random, 3) ? media(random, client, false) : ({ kind: 'text', text: word(random) } as const),
  );
  return [...parts, { kind: 'text', text: word(random) }];
}

const URLS = ['https://a.example/b.png', 'https://a.example/b', 'https://a.example/b.constructor', 'http://[bad'];

function media(random: Random, client: Client, isInResult: boolean): Part {
  const base64 = Buffer.from(word(random)).toString('base64');
  const isAudio = client !== 'messages' && !isInResult && chance(random, 5);
  if (isAudio) return { kind: 'audio', base64, format: random.pick(['wav', 'mp3', 'flac']) };
  if (client === 'messages' && !isInResult && chance(random, 5))
    return { kind: 'document', source: { text: word(random) } };
  if (chance(random, 3)) return { kind: 'document', source: { base64, mediaType: 'application/pdf' } };
  if (chance(random, 2)) return { kind: 'image', source: { url: random.pick(URLS) } };
  return { kind: 'image', source: { base64, mediaType: random.pick(['image/png', 'image/webp', 'image/tiff']) } };
}
