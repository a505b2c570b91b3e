import {
  BACKGROUND,
  bounded,
  type Dialect,
  ECHO,
  FILE,
  type FormedTool,
  free,
  kept,
  type PartRule,
  pricedExcept,
  RESPONSE_ID,
  SPEECH,
  TEXT,
  type ToolRule,
} from '../dialect';

const IMAGE = {
  sources: {
    data: { class: 'bounded', why: 'counts as `imageTokens`', counts: 'image' },
    url: { class: 'outside', why: 'the vendor fetches it', counts: 'imageByUrl' },
    file_id: { ...FILE, counts: 'imageByUrl' },
  },
} as const;

const FOUND: PartRule = { class: 'outside', why: 'the vendor reads what it found then' };

const AT_CLIENT: ToolRule = { class: 'free', why: 'runs at the client', overheads: 1 };
const DEFINED: ToolRule = { class: 'free', why: 'runs at the client', overheads: 0 };
const WEB_SEARCH: ToolRule = {
  class: 'priced',
  why: 'runs at the vendor',
  overheads: 1,
  meter: 'webSearch',
  isLimited: true,
};
const AT_VENDOR: ToolRule = { class: 'priced', why: 'runs at the vendor, which reports no price', overheads: 1 };

/** Item types that hold only the model's own output. The others hold results of the vendor's tools. */
const WRITTEN_ITEMS = [
  'message',
  'reasoning',
  'function_call',
  'custom_tool_call',
  'computer_call',
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'tool_search_call',
  'mcp_approval_request',
] as const;

/** The members and types of Responses requests: those of the package openai. */
export const RESPONSES_DIALECT: Dialect = {
  members: {
    model: free('chooses the price'),
    input: bounded('the conversation'),
    instructions: bounded('the system prompt'),
    tools: bounded('definitions of tools'),
    text: bounded('a schema is read'),
    max_output_tokens: bounded('limits the answer'),
    max_tool_calls: bounded('limits the tools that run at the vendor'),
    prompt_cache_options: bounded('the cache is written at most at its highest price'),
    prompt_cache_retention: bounded('the cache is written at most at its highest price'),
    client_metadata: free('is not read by the model'),
    include: free('says what is shown'),
    metadata: free('is not read by the model'),
    moderation: free('costs nothing at the vendor'),
    parallel_tool_calls: free('says how tools are used'),
    prompt_cache_key: free('can only lower the cost'),
    reasoning: free('counts towards the limit'),
    safety_identifier: free('is not read by the model'),
    store: free('says what the vendor keeps'),
    stream: free('says how the answer is sent'),
    stream_options: free('says how the answer is sent'),
    temperature: free('sampling'),
    tool_choice: free('says which tools are used'),
    top_logprobs: free('says what is shown'),
    top_p: free('sampling'),
    truncation: free('can only shorten the input'),
    user: free('is not read by the model'),
    priority: free('reserved for the gateway and not forwarded'),
    service_tier: pricedExcept(['auto', 'default'], 'a tier with a price of its own', 'tier'),
    speed: pricedExcept(['standard'], 'a speed with a price of its own', 'speed'),
    inference_geo: pricedExcept(['global'], 'a region with a price of its own', 'geo'),
    context_management: {
      class: 'outside',
      why: 'compaction runs the model once more',
      furtherPasses: 1,
      furtherAnswers: 1,
      isFree: (value) => Array.isArray(value) && value.length === 0,
      freeValues: '[]',
    },
    previous_response_id: RESPONSE_ID,
    conversation: kept('conversation', 'a conversation at the vendor'),
    prompt: kept('prompt', 'a prompt template at the vendor'),
    background: BACKGROUND,
  },
  parts: {
    message: TEXT,
    input_text: TEXT,
    output_text: TEXT,
    refusal: TEXT,
    summary_text: TEXT,
    reasoning_text: TEXT,
    input_image: IMAGE,
    computer_screenshot: IMAGE,
    input_file: {
      sources: {
        file_data: { class: 'outside', why: 'the vendor unpacks it', counts: 'document' },
        url: { class: 'outside', why: 'the vendor fetches it', counts: 'document' },
        data: { class: 'outside', why: 'the vendor unpacks it', counts: 'document' },
        file_id: FILE,
      },
    },
    input_audio: SPEECH,
    function_call: ECHO,
    function_call_output: TEXT,
    custom_tool_call: ECHO,
    custom_tool_call_output: TEXT,
    computer_call: ECHO,
    computer_call_output: TEXT,
    local_shell_call: ECHO,
    local_shell_call_output: TEXT,
    shell_call: ECHO,
    shell_call_output: TEXT,
    apply_patch_call: ECHO,
    apply_patch_call_output: TEXT,
    reasoning: {
      sources: {
        encrypted_content: ECHO,
        nothing: { class: 'outside', why: 'the vendor reads the reasoning that it has kept' },
      },
    },
    compaction: ECHO,
    compaction_trigger: {
      class: 'outside',
      why: 'compaction runs the model once more',
      furtherPasses: 1,
      furtherAnswers: 1,
    },
    web_search_call: FOUND,
    file_search_call: FOUND,
    code_interpreter_call: { class: 'outside', why: 'the vendor reads what its container holds' },
    image_generation_call: { class: 'outside', why: 'the vendor reads the image that it has kept' },
    tool_search_call: ECHO,
    tool_search_output: TEXT,
    additional_tools: TEXT,
    mcp_list_tools: ECHO,
    mcp_call: ECHO,
    mcp_approval_request: ECHO,
    mcp_approval_response: ECHO,
    program: ECHO,
    program_output: ECHO,
    item_reference: { class: 'outside', why: 'an item of an earlier answer', names: 'item' },
  },
  tools: {
    function: DEFINED,
    custom: DEFINED,
    namespace: DEFINED,
    apply_patch: AT_CLIENT,
    computer: AT_CLIENT,
    computer_use_preview: AT_CLIENT,
    local_shell: AT_CLIENT,
    shell: {
      forms: { local: AT_CLIENT, container: AT_VENDOR },
      formOf: ({ environment }) => (typeIn(environment) === 'local' ? 'local' : 'container'),
    },
    tool_search: {
      forms: {
        client: AT_CLIENT,
        server: { class: 'outside', why: 'the vendor runs the model on what it found', overheads: 1, isLimited: true },
      },
      formOf: ({ execution }) => (execution === 'client' ? 'client' : 'server'),
    },
    web_search: WEB_SEARCH,
    web_search_2025_08_26: WEB_SEARCH,
    web_search_preview: WEB_SEARCH,
    web_search_preview_2025_03_11: WEB_SEARCH,
    file_search: { ...WEB_SEARCH, meter: 'fileSearch', names: 'vector_store' },
    code_interpreter: codeInterpreter(),
    mcp: { class: 'outside', why: 'the vendor asks the MCP server', overheads: 1, isLimited: true },
    image_generation: AT_VENDOR,
    programmatic_tool_calling: AT_VENDOR,
  },
  toolLimit: 'max_tool_calls',
  keepsAnswers: { kind: 'previous_response_id', unless: 'store' },
  kept: {
    previous_response_id: {
      days: 30,
      answer: ['id'],
      events: { 'response.created': ['response', 'id'], 'response.completed': ['response', 'id'] },
      items: {
        kind: 'item',
        answer: ['output'],
        events: { 'response.output_item.added': ['item'], 'response.output_item.done': ['item'] },
        written: WRITTEN_ITEMS,
      },
    },
  },
};

/** Returns the rules of the code interpreter. A container is priced by its size; the usual size costs the meter's price. */
function codeInterpreter(): FormedTool {
  const usual: ToolRule = { ...WEB_SEARCH, meter: 'codeInterpreter' };
  return {
    forms: {
      usual,
      files: { ...usual, names: 'file_id' },
      'named container': { ...usual, names: 'container' },
      'other size': AT_VENDOR,
    },
    formOf: ({ container }) => {
      if (typeof container === 'string') return 'named container';
      if (!isObject(container) || container['type'] !== 'auto') return undefined;
      if ((container['memory_limit'] ?? '1g') !== '1g') return 'other size';
      const files = container['file_ids'] ?? [];
      return Array.isArray(files) && files.length === 0 ? 'usual' : 'files';
    },
  };
}

function typeIn(value: unknown): unknown {
  return isObject(value) ? value['type'] : undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
