import { asObject } from '../../base/json-values';
import {
  AT_CLIENT,
  AT_VENDOR,
  bounded,
  CACHE_HINT,
  COMPACTION,
  carried,
  count,
  DOCUMENT,
  dropped,
  ECHO,
  each,
  free,
  IMAGE,
  kept,
  LIST,
  numberUpTo,
  outside,
  PASSES_OF_A_LOOP,
  priced,
  refused,
  refusedUnless,
  STRING_OR_LIST,
  TEXT_PART,
} from '../request-rows';
import type { Keeping, NeededModel, Needs, PartRow, RequestTable, ToolRow } from '../request-table';
import { SHARED_MEMBERS } from '../shared-members';
import { TranslationRules } from '../translation-rules';

const RETURNED = carried('goes back to where it came from');
const IS_CALL = 'is a call of a tool, or its result';
const IS_SCHEMA = 'is the schema of the answer';

const TOOLSET_NAME = refused('names a toolset of its vendor');
const OF_VENDOR_TOOL: PartRow = { ...ECHO, ...refused('belongs to a tool that other dialects do not have') };
const UNPACKED = outside('the vendor puts the definition of a tool in its place');

const TOOLSET: ToolRow = { ...AT_CLIENT, overheads: 8 };
const TOOL_SEARCH: ToolRow = {
  ...outside('the vendor searches and runs the model on what it found'),
  overheads: 1,
  furtherPasses: PASSES_OF_A_LOOP,
  ...AT_VENDOR,
};
const WEB = { ...priced('runs at the vendor'), leaves: 'fetch', overheads: 1, isLimited: true, ...AT_VENDOR } as const;
const WEB_SEARCH: ToolRow = { ...WEB, meter: 'webSearch' };
const WEB_FETCH: ToolRow = { ...WEB, meter: 'webFetch' };
/** The additional cost of newer versions of the web tools, in which code filters the results. The filter runs the model again and creates a container. */
const FILTERING = { furtherPasses: PASSES_OF_A_LOOP, makes: 'container' } as const;

/** The members of Messages requests: those of @anthropic-ai/sdk, including its beta interface. */
export const MESSAGES_TABLE: RequestTable = {
  members: {
    ...SHARED_MEMBERS,
    max_tokens: {
      ...bounded('limits the answer'),
      ...carried('is the limit of the answer', 'maxTokens'),
      // An output limit of 0 means that the call only fills the vendor's cache.
      is: count(0),
      isRequired: true,
    },
    messages: {
      ...bounded('the conversation'),
      ...carried('is the conversation', 'isBegun', 'system'),
      is: LIST,
      isRequired: true,
    },
    system: { ...bounded('the system prompt'), ...carried('is the instructions'), is: STRING_OR_LIST },
    output_config: {
      ...bounded('a schema is read'),
      ...carried('has the effort of reasoning and the schema of the answer'),
    },
    output_format: { ...bounded('a schema is read'), ...carried(IS_SCHEMA) },
    cache_control: { ...bounded('the cache is written at most at its highest price'), ...CACHE_HINT },
    thinking: {
      ...free('counts towards max_tokens'),
      ...carried('goes to models with the setting `reasoning`', 'reasoning'),
    },
    metadata: {
      ...free('is not read by the model'),
      ...carried('names the person behind the call to dialects that have a place for it'),
    },
    stop_sequences: { ...free('can only shorten the answer'), ...carried('are the stop sequences', 'stop') },
    temperature: { ...free('sampling'), ...carried('is the same in all dialects', 'temperature'), is: numberUpTo(1) },
    top_k: { ...free('sampling'), ...carried('goes to dialects that have it', 'topK') },
    diagnostics: { ...free('compares two prompts'), ...dropped('compares prompts at its vendor') },
    fallback_credit_token: { ...free('can only lower the cost'), ...dropped('is good at its vendor alone') },
    fallbacks: {
      ...priced('other models, with prices of their own'),
      needs: fallbackModels,
      ...refusedUnless([[]], 'asks for other models of its vendor'),
    },
    billing_policy: { ...priced('bills another party'), ...refused('is good at its vendor alone') },
    web_search_options: {
      ...priced('searches have a price each'),
      leaves: 'fetch',
      ...refused('asks for searches at its vendor'),
    },
    context_management: {
      ...COMPACTION,
      isFree: onlyClears,
      freeValues: 'edits that only clear',
      ...dropped('lets its vendor shorten the conversation'),
    },
    compaction: { ...COMPACTION, ...refused('asks its vendor for a summary') },
    mcp_servers: {
      ...outside('the vendor asks these servers and runs the model on what they say'),
      leaves: 'pass on',
      furtherPasses: PASSES_OF_A_LOOP,
      ...refusedUnless([[]], 'are asked by its vendor'),
    },
    thread: {
      ...kept('thread', 'a conversation at the vendor'),
      leaves: 'keep',
      keeps: namedThread,
      freeValues: '{"type": "create"}',
      ...refused('names a conversation at its vendor'),
    },
    container: {
      ...kept('container', 'files and skills at the vendor'),
      leaves: 'keep',
      keeps: namedContainer,
      ...refused('names files at its vendor'),
    },
  },
  // Anthropic added the role `system` in autumn 2026.
  roles: ['user', 'assistant', 'system'],
  nullIsAbsent: false,
  parts: {
    text: { ...TEXT_PART, ...carried('is what a side says', 'text') },
    tool_use: { ...TEXT_PART, ...carried(IS_CALL, 'tool_call') },
    tool_result: { ...TEXT_PART, ...carried(IS_CALL, 'tool_result') },
    thinking: { ...TEXT_PART, ...RETURNED },
    redacted_thinking: { ...ECHO, ...RETURNED },
    image: {
      sources: { base64: IMAGE.data, url: IMAGE.url, file: IMAGE.file },
      ...carried('is what a side says', 'image'),
    },
    document: {
      sources: { text: TEXT_PART, content: TEXT_PART, base64: DOCUMENT.data, url: DOCUMENT.url, file: DOCUMENT.file },
      ...carried('is what a side says', 'document'),
    },
    tool_reference: { ...UNPACKED, ...carried('is a tool that a search at the client found, and is sent as text') },
    ...each({ ...TEXT_PART, ...refused('has no place in other dialects') }, 'search_result', 'browser_state'),
    container_upload: { ...DOCUMENT.file, leaves: 'keep', ...refused('names a file at its vendor') },
    ...each(
      OF_VENDOR_TOOL,
      'server_tool_use',
      'web_search_tool_result',
      'web_search_result',
      'web_fetch_tool_result',
      'advisor_tool_result',
      'code_execution_tool_result',
      'bash_code_execution_tool_result',
      'text_editor_code_execution_tool_result',
      'tool_search_tool_result',
      'mcp_tool_use',
      'mcp_tool_result',
      'mcp_tool_listing',
      'tool_removal',
    ),
    tool_addition: { ...OF_VENDOR_TOOL, ...UNPACKED },
    compaction: { ...ECHO, ...refused('is a summary that its vendor alone can read or make') },
    fallback: { ...ECHO, ...refused('is good at its vendor alone') },
  },
  tools: {
    custom: { ...AT_CLIENT, overheads: 0, ...carried('is a tool that runs at the client') },
    ...each(AT_CLIENT, 'bash_*', 'text_editor_*', 'computer_*', 'memory_*'),
    ...each(TOOLSET, 'computer_toolset_*', 'browser_toolset_*'),
    mcp_toolset: {
      ...outside('the vendor asks the MCP server'),
      leaves: 'pass on',
      overheads: 0,
      furtherPasses: PASSES_OF_A_LOOP,
      ...AT_VENDOR,
    },
    ...each(TOOL_SEARCH, 'tool_search_tool_regex_*', 'tool_search_tool_bm25_*'),
    web_search_20250305: WEB_SEARCH,
    'web_search_*': { ...WEB_SEARCH, ...FILTERING },
    web_fetch_20250910: WEB_FETCH,
    'web_fetch_*': { ...WEB_FETCH, ...FILTERING },
    'code_execution_*': {
      ...priced('runs at the vendor, which charges by the hour and reports no time'),
      leaves: 'keep',
      overheads: 1,
      meter: 'codeExecution',
      ...FILTERING,
      ...AT_VENDOR,
    },
    'advisor_*': {
      ...priced("runs at the vendor, at another model's price"),
      leaves: 'pass on',
      overheads: 1,
      ...AT_VENDOR,
    },
  },
  nested: {
    'messages[]': {
      role: carried('is the side that speaks, or `system` for instructions inside the conversation'),
      content: carried('is what it says'),
      output_config: carried('has the effort of reasoning from there on'),
      clear_at: carried('leaves instructions out of later turns'),
    },
    output_config: {
      effort: carried('is the effort of reasoning'),
      format: carried(IS_SCHEMA, 'outputFormat'),
      task_budget: refused('is counted by its vendor'),
    },
    'output_config.format': each(carried(IS_SCHEMA), 'type', 'schema'),
    thinking: each(
      carried('says whether the model reasons, how much, and whether it is shown'),
      'type',
      'budget_tokens',
      'display',
    ),
    metadata: { user_id: carried('names the person behind the call', 'user') },
    tool_choice: {
      ...each(carried('is the choice of tools'), 'type', 'name'),
      disable_parallel_tool_use: carried('says whether several may be called at once', 'parallelTools'),
    },
    'tools[]': {
      ...each(carried('is the tool'), 'type', 'name', 'description', 'input_schema', 'strict'),
      cache_control: CACHE_HINT,
      eager_input_streaming: dropped('is how its vendor streams'),
      defer_loading: dropped('the tool is given at once'),
      allowed_callers: refusedUnless([[], ['direct']], 'lets code at its vendor call tools'),
      input_examples: refusedUnless([[]], 'has no place in other dialects'),
    },
    'content[text]': {
      text: carried('is the text'),
      citations: dropped('are those of earlier turns'),
      cache_control: CACHE_HINT,
    },
    'content[image]': {
      source: carried('is the image: its bytes or its address'),
      cache_control: CACHE_HINT,
      transformations: refusedUnless([{}, { oversized_image: 'downsize' }], 'asks its vendor to refuse large images'),
    },
    'content[document]': {
      source: carried('is the document: its bytes, its address or its text'),
      title: carried('is its name'),
      cache_control: CACHE_HINT,
      context: refused('has no place in other dialects'),
      citations: refusedUnless([{}, { enabled: false }], 'asks its vendor for citations'),
    },
    source: each(carried('is the bytes, the address or the text'), 'type', 'media_type', 'data', 'url', 'content'),
    'content[tool_use]': {
      ...each(carried('is the call'), 'id', 'name', 'input'),
      caller: dropped('says which tool called it'),
      cache_control: CACHE_HINT,
      toolset_name: TOOLSET_NAME,
    },
    'content[tool_result]': {
      ...each(carried('is what the tool gave back'), 'tool_use_id', 'content', 'is_error'),
      cache_control: CACHE_HINT,
      toolset_name: TOOLSET_NAME,
    },
    'content[tool_reference]': { tool_name: carried('is the tool that was found'), cache_control: CACHE_HINT },
    'content[thinking]': each(RETURNED, 'thinking', 'signature'),
    'content[redacted_thinking]': { data: RETURNED },
  },
  kept: {
    thread: { days: 30, answer: ['id'], events: { message_start: ['message', 'id'] } },
    container: {
      days: 30,
      answer: ['container', 'id'],
      events: { message_start: ['message', 'container', 'id'], message_delta: ['delta', 'container', 'id'] },
    },
  },
};

export const MESSAGES_RULES = new TranslationRules(MESSAGES_TABLE);

/** Returns the vendor's thread that a value names. A thread has the id of its newest answer, so each answer changes the thread's id. */
function namedThread(value: unknown): Keeping | undefined {
  const { type, previous_message_id: id, ...others } = asObject(value) ?? {};
  if (Object.keys(others).length > 0) return undefined;
  if (type === 'create' && id === undefined) return { names: [], makes: ['thread'], isOutside: false };
  if (type !== 'continue' || typeof id !== 'string') return undefined;
  return { names: [{ kind: 'thread', id }], makes: ['thread'], isOutside: false };
}

function namedContainer(value: unknown): Keeping | undefined {
  if (typeof value === 'string')
    return { names: [{ kind: 'container', id: value }], makes: ['container'], isOutside: false };
  const container = asObject(value);
  if (container === undefined) return undefined;
  const { id = null, skills, ...others } = container;
  if (Object.keys(others).length > 0 || !(id === null || typeof id === 'string')) return undefined;
  const own = ownSkills(skills ?? []);
  if (own === undefined) return undefined;
  const named = id === null ? [] : [{ kind: 'container' as const, id }];
  return { names: [...named, ...own.names], makes: ['container'], isOutside: own.isOutside };
}

/** Returns the skills in a request that customers of the vendor made. The vendor's own skills belong to no account. */
function ownSkills(skills: unknown): Pick<Keeping, 'names' | 'isOutside'> | undefined {
  if (!Array.isArray(skills)) return undefined;
  const types = skills.map((skill) => asObject(skill)?.['type']);
  if (!types.every((type) => type === 'anthropic' || type === 'custom')) return undefined;
  return { names: types.includes('custom') ? [{ kind: 'skill' }] : [], isOutside: types.length > 0 };
}

/** Returns whether all edits in `context_management` only clear parts of the context. The vendor drops these parts before the model reads the context. */
function onlyClears(value: unknown): boolean {
  const context = asObject(value);
  if (context === undefined || Object.keys(context).some((name) => name !== 'edits')) return false;
  const edits = context['edits'] ?? [];
  return Array.isArray(edits) && edits.every((edit) => /^clear_[a-z_]+_[0-9]+$/.test(String(asObject(edit)?.['type'])));
}

/** Returns the models that the member `fallbacks` names. Returns undefined for a form that the table does not know, or for a speed with a separate price. */
function fallbackModels(value: unknown): Needs | undefined {
  if (!Array.isArray(value)) return undefined;
  const models = value.map(fallbackModel);
  return models.every((each) => each !== undefined) ? { models } : undefined;
}

const OF_FALLBACK: readonly string[] = ['model', 'max_tokens', 'output_config', 'speed', 'thinking'];

function fallbackModel(value: unknown): NeededModel | undefined {
  const fallback = asObject(value) ?? {};
  if (Object.keys(fallback).some((name) => !OF_FALLBACK.includes(name))) return undefined;
  const { model, max_tokens: limit = null, speed = null } = fallback;
  if (typeof model !== 'string' || (speed !== null && speed !== 'standard')) return undefined;
  if (limit !== null && !(Number.isSafeInteger(limit) && Number(limit) >= 0)) return undefined;
  return { model, maxOutputTokens: limit === null ? undefined : Number(limit) };
}
