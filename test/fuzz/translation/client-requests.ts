import type { Conversation, Part, Source, Tool, ToolResultPart, Turn } from '../../../core/catalog/conversation';
import type { Random } from '../../support/random';
import type { Client } from './directions';
import { chance, word } from './talk';

type Json = Record<string, unknown>;

/** Writes a request as a program of this dialect does: in one of several equivalent forms, with members that a rule drops. */
export function requestOf(random: Random, client: Client, talk: Conversation): Json {
  return WRITERS[client](random, talk);
}

const WRITERS: Readonly<Record<Client, (random: Random, talk: Conversation) => Json>> = {
  messages: messagesRequest,
  chat: chatRequest,
  responses: responsesRequest,
};

/** Omits absent members, or writes them as `null`. */
function present(random: Random, members: Json): Json {
  const said = Object.entries(members).flatMap(([name, value]): [string, unknown][] => {
    if (value !== undefined) return [[name, value]];
    return chance(random, 10) ? [[name, null]] : [];
  });
  return Object.fromEntries(said);
}

function dataUrl(source: Source): string {
  return 'url' in source ? source.url : `data:${source.mediaType};base64,${source.base64}`;
}

function isPlain(parts: readonly Part[]): boolean {
  return parts.length === 1 && parts[0]?.kind === 'text';
}

function messagesRequest(random: Random, talk: Conversation): Json {
  const { instructions, turns, tools, stop, maxTokens, temperature, topP, topK, stream, outputFormat, user } = talk;
  const blocks = instructions.map(({ text }) => ({ type: 'text', text, ...cached(random) }));
  return present(random, {
    model: 'asked',
    max_tokens: maxTokens,
    system: blocks.length === 0 ? undefined : blocks,
    messages: turns.map(({ role, parts }) => ({ role, content: messagesContent(random, parts) })),
    tools: tools.length === 0 ? undefined : tools.map((tool) => messagesTool(random, tool)),
    tool_choice: messagesChoice(talk),
    stop_sequences: stop.length === 0 ? undefined : stop,
    temperature,
    top_p: topP,
    top_k: topK,
    stream: stream || undefined,
    output_config:
      outputFormat?.kind === 'schema' ? { format: { type: 'json_schema', schema: outputFormat.schema } } : undefined,
    metadata: user === undefined ? undefined : { user_id: user },
    service_tier: chance(random, 8) ? 'auto' : undefined,
  });
}

function cached(random: Random): Json {
  return chance(random, 6) ? { cache_control: { type: 'ephemeral', ttl: '1h' } } : {};
}

function messagesContent(random: Random, parts: readonly Part[]): unknown {
  const [first] = parts;
  if (isPlain(parts) && first?.kind === 'text' && chance(random, 2)) return first.text;
  return parts.map((part) => messagesBlock(random, part));
}

function messagesBlock(random: Random, part: Part): Json {
  switch (part.kind) {
    case 'image':
      return { type: 'image', source: messagesSource(part.source), ...cached(random) };
    case 'document':
      if ('text' in part.source)
        return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: part.source.text } };
      return { type: 'document', source: messagesSource(part.source), title: null };
    case 'tool_call':
      return {
        type: 'tool_use',
        id: part.id,
        name: part.name,
        input: JSON.parse(part.input),
        caller: { type: 'direct' },
      };
    case 'tool_result': {
      const content = part.parts.length === 0 && chance(random, 2) ? undefined : messagesContent(random, part.parts);
      return present(random, { type: 'tool_result', tool_use_id: part.id, content, is_error: part.isError });
    }
    case 'text':
      return { type: 'text', text: part.text, ...cached(random) };
    default:
      throw new Error(`Messages has no ${part.kind}`);
  }
}

function messagesSource(source: Source): Json {
  if ('url' in source) return { type: 'url', url: source.url };
  return { type: 'base64', media_type: source.mediaType, data: source.base64 };
}

function messagesTool(random: Random, { name, description, schema, strict }: Tool): Json {
  return present(random, { name, description, input_schema: schema, strict, ...cached(random) });
}

function messagesChoice({ toolChoice, parallelTools }: Conversation): Json | undefined {
  const single = parallelTools === undefined ? {} : { disable_parallel_tool_use: !parallelTools };
  if (toolChoice === undefined) return parallelTools === undefined ? undefined : { type: 'auto', ...single };
  if (typeof toolChoice === 'object') return { type: 'tool', name: toolChoice.tool, ...single };
  return { type: toolChoice === 'required' ? 'any' : toolChoice, ...single };
}

function chatRequest(random: Random, talk: Conversation): Json {
  const { instructions, turns, tools, stop, maxTokens, stream, choices, user } = talk;
  const system = { role: random.pick(['system', 'developer']), content: instructions };
  return present(random, {
    model: 'asked',
    messages: [
      ...(instructions.length === 0 ? [] : [system]).map((message) => chatInstructions(message)),
      ...turns.flatMap((turn) => chatMessages(random, turn)),
    ],
    tools: tools.length === 0 ? undefined : tools.map((tool) => chatTool(random, tool)),
    tool_choice: chatChoice(talk),
    parallel_tool_calls: talk.parallelTools,
    [random.pick(['max_tokens', 'max_completion_tokens'])]: maxTokens,
    n: choices > 1 ? choices : undefined,
    stop: stop.length === 1 && chance(random, 2) ? stop[0] : stop.length === 0 ? undefined : stop,
    stream: stream || undefined,
    temperature: talk.temperature,
    top_p: talk.topP,
    seed: talk.seed,
    frequency_penalty: talk.frequencyPenalty,
    presence_penalty: talk.presencePenalty,
    response_format: chatFormat(random, talk),
    user,
    logit_bias: chance(random, 8) ? { '50256': -100 } : undefined,
  });
}

function chatInstructions({ role, content }: { role: string; content: Conversation['instructions'] }): Json {
  return { role, content: content.map(({ text }) => ({ type: 'text', text })) };
}

function chatMessages(random: Random, { role, parts }: Turn): readonly Json[] {
  if (role === 'assistant') return [chatAnswer(random, parts)];
  const results = parts.filter((part): part is ToolResultPart => part.kind === 'tool_result');
  if (results.length > 0)
    return results.map(({ id, parts: said }) => ({
      role: 'tool',
      tool_call_id: id,
      content: chatContent(random, said),
    }));
  return [{ role, content: chatContent(random, parts) }];
}

function chatAnswer(random: Random, parts: readonly Part[]): Json {
  const texts = parts.filter(({ kind }) => kind === 'text');
  const refusal = parts.find((part) => part.kind === 'refusal')?.text;
  const calls = parts.flatMap((part) => {
    if (part.kind !== 'tool_call') return [];
    const { id, name, input, isText } = part;
    return [
      isText === true
        ? { id, type: 'custom', custom: { name, input } }
        : { id, type: 'function', function: { name, arguments: input } },
    ];
  });
  return present(random, {
    role: 'assistant',
    content: texts.length === 0 ? undefined : chatContent(random, texts),
    refusal,
    tool_calls: calls.length === 0 ? undefined : calls,
    reasoning_content: chance(random, 4) ? word(random) : undefined,
  });
}

function chatContent(random: Random, parts: readonly Part[]): unknown {
  const [first] = parts;
  if (isPlain(parts) && first?.kind === 'text' && chance(random, 2)) return first.text;
  return parts.map((part) => chatPart(part));
}

function chatPart(part: Part): Json {
  switch (part.kind) {
    case 'image':
      return { type: 'image_url', image_url: { url: dataUrl(part.source) } };
    case 'document':
      return { type: 'file', file: { filename: 'a.pdf', file_data: dataUrl(part.source as Source) } };
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.base64, format: part.format } };
    case 'text':
      return { type: 'text', text: part.text };
    default:
      throw new Error(`no ${part.kind} stands in content`);
  }
}

function chatTool(random: Random, { name, description, schema, strict, input, format }: Tool): Json {
  if (input === 'json')
    return { type: 'function', function: present(random, { name, description, parameters: schema, strict }) };
  const grammar = format as { syntax: string; definition: string } | undefined;
  const nested = grammar && { type: 'grammar', grammar: { syntax: grammar.syntax, definition: grammar.definition } };
  return { type: 'custom', custom: present(random, { name, description, format: nested }) };
}

function chatChoice({ toolChoice }: Conversation): unknown {
  if (typeof toolChoice !== 'object') return toolChoice;
  const type = toolChoice.input === 'text' ? 'custom' : 'function';
  return { type, [type]: { name: toolChoice.tool } };
}

function chatFormat(random: Random, { outputFormat }: Conversation): unknown {
  if (outputFormat === undefined) return chance(random, 8) ? { type: 'text' } : undefined;
  if (outputFormat.kind === 'json') return { type: 'json_object' };
  const { name = 'form', schema, strict } = outputFormat;
  return { type: 'json_schema', json_schema: present(random, { name, schema, strict }) };
}

function responsesRequest(random: Random, talk: Conversation): Json {
  const { instructions, turns, tools, stream, maxTokens, user, outputFormat, toolChoice } = talk;
  const isMember = instructions.length === 1 && chance(random, 2);
  const before = isMember ? [] : instructions.map(({ text }) => ({ role: 'developer', content: text }));
  return present(random, {
    model: 'asked',
    instructions: isMember ? instructions[0]?.text : undefined,
    input: [...before, ...turns.flatMap((turn) => responsesItems(random, turn))],
    tools: tools.length === 0 ? undefined : responsesTools(random, tools),
    tool_choice:
      typeof toolChoice === 'object'
        ? { type: toolChoice.input === 'text' ? 'custom' : 'function', name: ownName(toolChoice.tool).name }
        : toolChoice,
    parallel_tool_calls: talk.parallelTools,
    max_output_tokens: maxTokens,
    temperature: talk.temperature,
    top_p: talk.topP,
    stream: stream || undefined,
    store: chance(random, 2) ? false : undefined,
    safety_identifier: user,
    text: outputFormat && { format: responsesFormat(random, outputFormat) },
    metadata: chance(random, 6) ? { a: 'b' } : undefined,
  });
}

function ownName(flat: string): { readonly name: string; readonly namespace?: string } {
  const at = flat.indexOf('__');
  return at < 0 ? { name: flat } : { name: flat.slice(at + 2), namespace: flat.slice(0, at) };
}

function responsesItems(random: Random, { role, parts }: Turn): readonly Json[] {
  return parts.map((part) => {
    switch (part.kind) {
      case 'tool_call': {
        const { isText, id, name, input } = part;
        if (isText === true) return { type: 'custom_tool_call', call_id: id, ...ownName(name), input };
        return { type: 'function_call', call_id: id, ...ownName(name), arguments: input, status: 'completed' };
      }
      case 'tool_result': {
        const type = part.isText === true ? 'custom_tool_call_output' : 'function_call_output';
        const [first] = part.parts;
        const isText = isPlain(part.parts) && first?.kind === 'text' && chance(random, 2);
        const output = isText ? first.text : part.parts.map((each) => responsesPart(each, 'user'));
        return { type, call_id: part.id, output };
      }
      default:
        return { type: 'message', role, content: [responsesPart(part, role)] };
    }
  });
}

function responsesPart(part: Part, role: Turn['role']): Json {
  switch (part.kind) {
    case 'image':
      return { type: 'input_image', image_url: dataUrl(part.source), detail: 'auto' };
    case 'document':
      return { type: 'input_file', filename: 'a.pdf', file_data: dataUrl(part.source as Source) };
    case 'audio':
      return { type: 'input_audio', input_audio: { data: part.base64, format: part.format } };
    case 'refusal':
      return { type: 'refusal', refusal: part.text };
    case 'text':
      return role === 'assistant'
        ? { type: 'output_text', text: part.text, annotations: [] }
        : { type: 'input_text', text: part.text };
    default:
      throw new Error(`no ${part.kind} stands in content`);
  }
}

function responsesTools(random: Random, tools: readonly Tool[]): readonly Json[] {
  const inSpace = tools.filter(({ name }) => name.includes('__')).map((tool) => responsesTool(random, tool));
  const others = tools.filter(({ name }) => !name.includes('__')).map((tool) => responsesTool(random, tool));
  return inSpace.length === 0 ? others : [...others, { type: 'namespace', name: 'space', tools: inSpace }];
}

function responsesTool(random: Random, { name: flat, description, schema, strict, input, format }: Tool): Json {
  const { name } = ownName(flat);
  if (input === 'text') return present(random, { type: 'custom', name, description, format });
  return present(random, { type: 'function', name, description, parameters: schema, strict });
}

function responsesFormat(random: Random, format: NonNullable<Conversation['outputFormat']>): Json {
  if (format.kind === 'json') return { type: 'json_object' };
  const { name = 'form', schema, strict } = format;
  return present(random, { type: 'json_schema', name, schema, strict });
}
