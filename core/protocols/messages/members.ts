import {
  BACKGROUND,
  bounded,
  type Dialect,
  ECHO,
  FILE,
  free,
  type Keeping,
  kept,
  type NeededModel,
  type Needs,
  PASSES_OF_A_LOOP,
  type PartRule,
  pricedExcept,
  RESPONSE_ID,
  TEXT,
  type ToolRule,
} from '../dialect';

const UNPACKED: PartRule = { class: 'outside', why: 'the vendor puts the definition of a tool in its place' };

const WEB_SEARCH: ToolRule = {
  class: 'priced',
  why: 'runs at the vendor',
  overheads: 1,
  meter: 'webSearch',
  isLimited: true,
};
const WEB_FETCH: ToolRule = {
  class: 'priced',
  why: 'runs at the vendor',
  overheads: 1,
  meter: 'webFetch',
  isLimited: true,
};
/** What newer versions of the web tools add: they filter their results with code, which runs the model again and has a container. */
const FILTERING = { furtherPasses: PASSES_OF_A_LOOP, makes: 'container' } as const;

/** The members and types of Messages requests: those of @anthropic-ai/sdk, its beta interface included. */
export const MESSAGES_DIALECT: Dialect = {
  members: {
    model: free('chooses the price'),
    messages: bounded('the conversation'),
    system: bounded('the system prompt'),
    tools: bounded('definitions of tools'),
    max_tokens: bounded('limits the answer'),
    output_config: bounded('a schema is read'),
    output_format: bounded('a schema is read'),
    cache_control: bounded('the cache is written at most at its highest price'),
    thinking: free('counts towards max_tokens'),
    tool_choice: free('says which tools are used'),
    metadata: free('is not read by the model'),
    stop_sequences: free('can only shorten the answer'),
    stream: free('says how the answer is sent'),
    temperature: free('sampling'),
    top_k: free('sampling'),
    top_p: free('sampling'),
    diagnostics: free('compares two prompts'),
    fallback_credit_token: free('can only lower the cost'),
    priority: free('reserved for the gateway and not forwarded'),
    service_tier: pricedExcept(['auto', 'default', 'standard_only'], 'a tier with a price of its own', 'tier'),
    speed: pricedExcept(['standard'], 'a speed with a price of its own', 'speed'),
    inference_geo: pricedExcept(['global'], 'a region with a price of its own', 'geo'),
    fallbacks: { ...pricedExcept([], 'other models, with prices of their own'), needs: fallbackModels },
    billing_policy: pricedExcept([], 'bills another party'),
    web_search_options: pricedExcept([], 'searches have a price each'),
    context_management: {
      class: 'outside',
      why: 'compaction runs the model once more',
      furtherPasses: 1,
      furtherAnswers: 1,
      isFree: onlyClears,
      freeValues: 'edits that only clear',
    },
    compaction: {
      class: 'outside',
      why: 'compaction runs the model once more',
      furtherPasses: 1,
      furtherAnswers: 1,
    },
    mcp_servers: {
      class: 'outside',
      why: 'the vendor asks these servers and runs the model on what they say',
      furtherPasses: PASSES_OF_A_LOOP,
      isFree: isEmptyList,
      freeValues: '[]',
    },
    thread: {
      ...kept('thread', 'a conversation at the vendor'),
      keeps: threadOf,
      isFree: (value) => threadOf(value)?.names.length === 0,
      freeValues: '{"type": "create"}',
    },
    container: { ...kept('container', 'files and skills at the vendor'), keeps: containerOf },
    previous_response_id: RESPONSE_ID,
    conversation: kept('conversation', 'a conversation at the vendor'),
    prompt: kept('prompt', 'a prompt template at the vendor'),
    background: BACKGROUND,
  },
  parts: {
    text: TEXT,
    tool_use: TEXT,
    tool_result: TEXT,
    thinking: TEXT,
    redacted_thinking: ECHO,
    image: {
      sources: {
        base64: { class: 'bounded', why: 'counts as `imageTokens`', counts: 'image' },
        url: { class: 'outside', why: 'the vendor fetches it', counts: 'imageByUrl' },
        file: { ...FILE, counts: 'imageByUrl' },
      },
    },
    document: {
      sources: {
        text: TEXT,
        content: TEXT,
        base64: { class: 'outside', why: 'the vendor unpacks it', counts: 'document' },
        url: { class: 'outside', why: 'the vendor fetches it', counts: 'document' },
        file: FILE,
      },
    },
    search_result: TEXT,
    container_upload: FILE,
    server_tool_use: ECHO,
    web_search_tool_result: ECHO,
    web_search_result: ECHO,
    web_fetch_tool_result: ECHO,
    advisor_tool_result: ECHO,
    code_execution_tool_result: ECHO,
    bash_code_execution_tool_result: ECHO,
    text_editor_code_execution_tool_result: ECHO,
    tool_search_tool_result: ECHO,
    mcp_tool_use: ECHO,
    mcp_tool_result: ECHO,
    mcp_tool_listing: ECHO,
    compaction: ECHO,
    fallback: ECHO,
    browser_state: TEXT,
    tool_removal: TEXT,
    tool_addition: UNPACKED,
    tool_reference: UNPACKED,
  },
  tools: {
    custom: { class: 'free', why: 'runs at the client', overheads: 0 },
    'bash_*': { class: 'free', why: 'runs at the client', overheads: 1 },
    'text_editor_*': { class: 'free', why: 'runs at the client', overheads: 1 },
    'computer_*': { class: 'free', why: 'runs at the client', overheads: 1 },
    'memory_*': { class: 'free', why: 'runs at the client', overheads: 1 },
    'computer_toolset_*': { class: 'free', why: 'runs at the client', overheads: 8 },
    'browser_toolset_*': { class: 'free', why: 'runs at the client', overheads: 8 },
    mcp_toolset: {
      class: 'outside',
      why: 'the vendor asks the MCP server',
      overheads: 0,
      furtherPasses: PASSES_OF_A_LOOP,
    },
    'tool_search_tool_regex_*': {
      class: 'outside',
      why: 'the vendor searches and runs the model on what it found',
      overheads: 1,
      furtherPasses: PASSES_OF_A_LOOP,
    },
    'tool_search_tool_bm25_*': {
      class: 'outside',
      why: 'the vendor searches and runs the model on what it found',
      overheads: 1,
      furtherPasses: PASSES_OF_A_LOOP,
    },
    web_search_20250305: WEB_SEARCH,
    'web_search_*': { ...WEB_SEARCH, ...FILTERING },
    web_fetch_20250910: WEB_FETCH,
    'web_fetch_*': { ...WEB_FETCH, ...FILTERING },
    'code_execution_*': {
      class: 'priced',
      why: 'runs at the vendor, which charges by the hour and reports no time',
      overheads: 1,
      meter: 'codeExecution',
      furtherPasses: PASSES_OF_A_LOOP,
      makes: 'container',
    },
    'advisor_*': { class: 'priced', why: "runs at the vendor, at another model's price", overheads: 1 },
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

/** Returns the thread that a value names. A thread has the id of its newest answer, and each answer gives it another. */
function threadOf(value: unknown): Keeping | undefined {
  if (!isObject(value)) return undefined;
  const { type, previous_message_id: id, ...others } = value;
  if (Object.keys(others).length > 0) return undefined;
  if (type === 'create' && id === undefined) return { names: [], makes: ['thread'], isOutside: false };
  if (type !== 'continue' || typeof id !== 'string') return undefined;
  return { names: [{ kind: 'thread', id }], makes: ['thread'], isOutside: false };
}

function containerOf(value: unknown): Keeping | undefined {
  if (typeof value === 'string')
    return { names: [{ kind: 'container', id: value }], makes: ['container'], isOutside: false };
  if (!isObject(value)) return undefined;
  const { id = null, skills, ...others } = value;
  if (Object.keys(others).length > 0 || !(id === null || typeof id === 'string')) return undefined;
  const own = ownSkills(skills ?? []);
  if (own === undefined) return undefined;
  const named = id === null ? [] : [{ kind: 'container' as const, id }];
  return { names: [...named, ...own], makes: ['container'], isOutside: !isEmptyList(skills ?? []) };
}

/** Returns the skills that the vendor's customers made. The vendor's own skills belong to no account. */
function ownSkills(skills: unknown): Keeping['names'] | undefined {
  if (!Array.isArray(skills)) return undefined;
  const types = skills.map((skill) => isObject(skill) && skill['type']);
  if (!types.every((type) => type === 'anthropic' || type === 'custom')) return undefined;
  return types.includes('custom') ? [{ kind: 'skill' }] : [];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0;
}

/** Whether the edits of the context only clear parts of it, which the vendor drops before the model reads it. */
function onlyClears(value: unknown): boolean {
  if (!isObject(value) || Object.keys(value).some((name) => name !== 'edits')) return false;
  const edits = value['edits'] ?? [];
  return (
    Array.isArray(edits) && edits.every((edit) => isObject(edit) && /^clear_[a-z_]+_[0-9]+$/.test(String(edit['type'])))
  );
}

/** Returns the models of `fallbacks`; undefined for a form that the table does not know, or a speed with a price of its own. */
function fallbackModels(value: unknown): Needs | undefined {
  if (!Array.isArray(value)) return undefined;
  const models = value.map(fallbackModel);
  return models.every((each) => each !== undefined) ? { models } : undefined;
}

const OF_FALLBACK: readonly string[] = ['model', 'max_tokens', 'output_config', 'speed', 'thinking'];

function fallbackModel(value: unknown): NeededModel | undefined {
  if (!isObject(value) || Object.keys(value).some((name) => !OF_FALLBACK.includes(name))) return undefined;
  const { model, max_tokens: limit = null, speed = null } = value;
  if (typeof model !== 'string' || (speed !== null && speed !== 'standard')) return undefined;
  if (limit !== null && !(Number.isSafeInteger(limit) && Number(limit) >= 0)) return undefined;
  return { model, maxOutputTokens: limit === null ? undefined : Number(limit) };
}
