import {
  BOOLEAN,
  bounded,
  carried,
  count,
  DOCUMENT_DATA,
  DOCUMENT_URL,
  dropped,
  ECHO,
  each,
  FILE,
  free,
  IMAGE_DATA,
  IMAGE_FILE,
  IMAGE_URL,
  kept,
  LATER,
  LIST,
  MOST_USES,
  numberUpTo,
  outside,
  PRIORITY,
  priced,
  RESPONSE_ID,
  refused,
  refusedUnless,
  SPEECH,
  STRING,
  STRING_OR_LIST,
  TEXT,
  variant,
} from '../request-rows';
import type { PartRow, RequestTable, ToolRow } from '../request-table';
import { TranslationRules } from '../translation-rules';
import { VENDOR_SWITCHES } from '../vendor-switches';
import { codeInterpreter, searchForm, shellForm } from './request-values';

const COMPACTION = { ...outside('compaction runs the model once more'), furtherPasses: 1, furtherAnswers: 1 };
const SUMMARY = refused('is a summary that its vendor alone can read or make');
const KEPT = refused('names something that its vendor keeps');
const HINT = dropped('is a hint for the cache of its vendor');
const MARK = dropped('identifies items, or says how far they are complete');
const PERSON = 'names the person; dropped where the dialect has no place for it';
const CALL = carried('the call');
const RESULT = carried('what the tool says');
const TOOL = carried('the tool');
const FORM = carried('the form of the answer');
const GIVEN = dropped('the tool is given at once');
const CACHE_WRITE = {
  ...bounded('the cache is written at most at its highest price'),
  adds: 'hour',
  ...HINT,
} as const;
const NO_PROGRAMS = 'is for programs that run at its vendor';
/** The value in every call that the model made directly, not through a program at the vendor. */
const CALLER = refusedUnless([{ type: 'direct' }], NO_PROGRAMS);
const CALLERS = refusedUnless([['direct'], []], NO_PROGRAMS);

const OF_VENDOR_TOOL = refused('belongs to a tool that other dialects do not have');
const SAID_BY_VENDOR: PartRow = { ...ECHO, ...OF_VENDOR_TOOL };
const FOUND: PartRow = {
  ...outside('the vendor reads what it found then'),
  ...refused('has what its vendor found, which is not in the request'),
};
const IMAGE = { sources: { data: IMAGE_DATA, url: IMAGE_URL, file_id: IMAGE_FILE } };

const AT_CLIENT: ToolRow = {
  class: 'free',
  why: 'runs at the client',
  overheads: 1,
  ...refused('is a tool that its vendor defines'),
};
const DEFINED: ToolRow = { ...AT_CLIENT, overheads: 0, ...carried('a tool') };
const AT_VENDOR = refused('is a tool that runs at its vendor');
const UNREPORTED: ToolRow = { ...priced('runs at the vendor, which reports no price'), overheads: 1, ...AT_VENDOR };
const WEB_SEARCH = {
  ...priced('runs at the vendor'),
  overheads: 1,
  meter: 'webSearch',
  isLimited: true,
  ...AT_VENDOR,
} as const;

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

/**
 * The requests of Responses: those of the package openai. In translation, unknown members of earlier answers that a client repeats
 * are dropped. A function without `strict` stays as it is, because the vendor only tries to hold the model to such a schema.
 */
export const RESPONSES_REQUEST: RequestTable = {
  members: {
    model: { ...free('chooses the price'), ...carried('the upstream has its own name of the model') },
    input: {
      ...bounded('the conversation'),
      ...carried('the conversation', 'isBegun'),
      is: STRING_OR_LIST,
      isRequired: true,
      replacedBy: ['previous_response_id', 'conversation', 'prompt'],
    },
    instructions: { ...bounded('the system prompt'), ...carried('the instructions'), is: STRING },
    tools: { ...bounded('definitions of tools'), ...carried('the tools', 'tools'), is: LIST },
    text: { ...bounded('a schema is read'), ...FORM },
    max_output_tokens: {
      ...bounded('limits the answer'),
      ...carried('limits the answer', 'maxTokens'),
      is: count(1),
    },
    max_tool_calls: {
      ...bounded('limits the tools that run at the vendor'),
      ...dropped('limits tools that run at its vendor, and those are refused'),
      is: count(0, MOST_USES),
    },
    prompt_cache_options: CACHE_WRITE,
    prompt_cache_retention: CACHE_WRITE,
    client_metadata: { ...free('is not read by the model'), ...dropped('is not read by the model') },
    include: { ...free('says what is shown'), ...dropped('what can be shown of the answer is shown') },
    metadata: { ...free('is not read by the model'), ...dropped('is not read by the model') },
    moderation: {
      ...free('costs nothing at the vendor'),
      ...refused('asks its vendor to look at the conversation'),
    },
    parallel_tool_calls: {
      ...free('says how tools are used'),
      ...carried('says how tools are used', 'parallelTools'),
    },
    prompt_cache_key: {
      ...free('can only lower the cost'),
      ...carried('dropped where the dialect has no place for it', 'cacheKey'),
    },
    reasoning: {
      ...free('counts towards the limit'),
      ...carried('written as the setting `reasoning` of the upstream or model says', 'reasoning'),
    },
    safety_identifier: { ...free('is not read by the model'), ...carried(PERSON, 'user') },
    store: { ...free('says what the vendor keeps'), ...dropped('nothing is kept of a translated answer') },
    stream: { ...free('says how the answer is sent'), ...carried('says how the answer is sent'), is: BOOLEAN },
    stream_options: {
      ...free('says how the answer is sent'),
      ...dropped('a translated stream has its usage and no padding'),
    },
    temperature: { ...free('sampling'), ...carried('sampling', 'temperature'), is: numberUpTo(2) },
    tool_choice: { ...free('says which tools are used'), ...carried('says how tools are used', 'toolChoice') },
    top_logprobs: { ...free('says what is shown'), ...dropped('the answer has no probabilities') },
    top_p: { ...free('sampling'), ...carried('sampling', 'topP') },
    truncation: { ...free('can only shorten the input'), ...dropped('the conversation is sent whole') },
    user: { ...free('is not read by the model'), ...carried(PERSON) },
    priority: PRIORITY,
    service_tier: { ...variant('tier', 'auto', 'default'), ...refused('asks for a tier of its vendor') },
    speed: { ...variant('speed', 'standard'), ...refused('asks for a speed of its vendor') },
    inference_geo: { ...variant('geo', 'global'), ...refused('asks for a region of its vendor') },
    context_management: {
      ...COMPACTION,
      harmless: [[]],
      ...dropped('the conversation is sent whole'),
    },
    previous_response_id: { ...RESPONSE_ID, ...KEPT },
    conversation: { ...kept('conversation', 'a conversation at the vendor'), ...KEPT },
    prompt: { ...kept('prompt', 'a prompt template at the vendor'), ...KEPT },
    background: LATER,
    ...VENDOR_SWITCHES,
  },
  roles: ['user', 'assistant', 'system', 'developer'],
  nullIsAbsent: true,
  items: {
    message: { ...TEXT, ...carried('what one side says') },
    function_call: { ...ECHO, ...carried('a call of a tool', 'tool_call') },
    custom_tool_call: { ...ECHO, ...carried('a call of a tool') },
    function_call_output: { ...TEXT, ...carried('what a tool says', 'tool_result') },
    custom_tool_call_output: { ...TEXT, ...carried('what a tool says') },
    reasoning: {
      sources: {
        encrypted_content: ECHO,
        nothing: outside('the vendor reads the reasoning that it has kept'),
      },
      ...carried('goes back to the upstream that made it, and to no other'),
    },
    additional_tools: { ...TEXT, ...carried('more tools') },
    tool_search_call: { ...ECHO, ...carried('a search for tools that the client runs') },
    tool_search_output: { ...TEXT, ...carried('a search for tools that the client runs') },
    item_reference: { ...outside('an item of an earlier answer'), names: 'item', ...KEPT },
    compaction: { ...ECHO, ...SUMMARY },
    compaction_trigger: { ...COMPACTION, ...SUMMARY },
    ...each(FOUND, 'web_search_call', 'file_search_call'),
    code_interpreter_call: { ...outside('the vendor reads what its container holds'), ...OF_VENDOR_TOOL },
    image_generation_call: { ...outside('the vendor reads the image that it has kept'), ...OF_VENDOR_TOOL },
    ...each(
      SAID_BY_VENDOR,
      'computer_call',
      'computer_call_output',
      'local_shell_call',
      'local_shell_call_output',
      'shell_call',
      'shell_call_output',
      'apply_patch_call',
      'apply_patch_call_output',
      'mcp_list_tools',
      'mcp_call',
      'mcp_approval_request',
      'mcp_approval_response',
      'program',
      'program_output',
    ),
  },
  parts: {
    input_text: { ...TEXT, ...carried('text', 'text') },
    output_text: { ...TEXT, ...carried('text') },
    refusal: { ...TEXT, ...carried('a refusal', 'refusal') },
    // The reader of the item around them translates these two.
    summary_text: TEXT,
    reasoning_text: TEXT,
    input_image: { ...IMAGE, ...carried('an image', 'image') },
    computer_screenshot: { ...IMAGE, ...OF_VENDOR_TOOL },
    input_file: {
      sources: { file_data: DOCUMENT_DATA, url: DOCUMENT_URL, data: DOCUMENT_DATA, file_id: FILE },
      ...carried('a document', 'document'),
    },
    input_audio: { ...SPEECH, ...carried('spoken words', 'audio') },
  },
  tools: {
    function: DEFINED,
    custom: DEFINED,
    namespace: { ...DEFINED, ...carried('the tools in it get longer names, and their own ones again in answers') },
    ...each(AT_CLIENT, 'apply_patch', 'computer', 'computer_use_preview', 'local_shell'),
    shell: {
      forms: { local: AT_CLIENT, container: UNREPORTED },
      formOf: shellForm,
      ...refused('is a tool that its vendor defines'),
    },
    tool_search: {
      forms: {
        client: AT_CLIENT,
        server: { ...outside('the vendor runs the model on what it found'), overheads: 1, isLimited: true },
      },
      formOf: searchForm,
      ...carried('becomes a function where it runs at the client'),
    },
    ...each(WEB_SEARCH, 'web_search', 'web_search_2025_08_26', 'web_search_preview', 'web_search_preview_2025_03_11'),
    file_search: { ...WEB_SEARCH, meter: 'fileSearch', names: 'vector_store' },
    code_interpreter: { ...codeInterpreter(WEB_SEARCH, UNREPORTED), ...AT_VENDOR },
    mcp: { ...outside('the vendor asks the MCP server'), overheads: 1, isLimited: true, ...AT_VENDOR },
    ...each(UNREPORTED, 'image_generation', 'programmatic_tool_calling'),
  },
  nested: {
    'input[message]': {
      ...each(carried('what one side says'), 'type', 'content'),
      role: carried('what one side says', 'system'),
      ...each(MARK, 'id', 'status', 'phase', 'end_turn'),
    },
    'input[function_call]': {
      ...each(CALL, 'type', 'call_id', 'name', 'namespace', 'arguments'),
      ...each(MARK, 'id', 'status'),
      parsed_arguments: dropped('programs add it to answers that they send back'),
      caller: CALLER,
    },
    'input[custom_tool_call]': {
      ...each(CALL, 'type', 'call_id', 'name', 'namespace', 'input'),
      ...each(MARK, 'id', 'status'),
      caller: CALLER,
    },
    'input[function_call_output]': {
      ...each(RESULT, 'type', 'call_id', 'output'),
      ...each(MARK, 'id', 'status'),
      caller: CALLER,
    },
    'input[custom_tool_call_output]': {
      ...each(RESULT, 'type', 'call_id', 'output'),
      ...each(MARK, 'id', 'status', 'name'),
      caller: CALLER,
    },
    'input[reasoning]': {
      ...each(carried('what is shown of it'), 'type', 'summary'),
      encrypted_content: carried('the signature'),
      content: dropped('its summary is what is shown'),
      ...each(MARK, 'id', 'status'),
    },
    'input[additional_tools]': { ...each(carried('more tools'), 'type', 'tools'), ...each(MARK, 'id', 'role') },
    'input[tool_search_call]': {
      ...each(carried('the search'), 'type', 'call_id', 'arguments'),
      ...each(MARK, 'id', 'status'),
      execution: carried('where it runs; only `client` is'),
    },
    'input[tool_search_output]': {
      ...each(carried('the tools that were found'), 'type', 'call_id', 'tools'),
      ...each(MARK, 'id', 'status'),
      execution: carried('where it ran; only `client` is'),
    },
    'content[input_text]': { ...each(carried('text'), 'type', 'text'), prompt_cache_breakpoint: HINT },
    'content[output_text]': {
      ...each(carried('text'), 'type', 'text'),
      annotations: dropped('say where earlier answers have something from'),
      ...each(dropped('say something of earlier answers'), 'logprobs', 'parsed'),
    },
    'content[refusal]': each(carried('a refusal'), 'type', 'refusal'),
    'content[input_image]': {
      ...each(carried('the image'), 'type', 'image_url'),
      detail: carried('how closely it is looked at; `original` is dropped'),
      file_id: KEPT,
      prompt_cache_breakpoint: HINT,
    },
    'content[input_file]': {
      ...each(carried('the document'), 'type', 'file_data', 'file_url', 'filename'),
      detail: dropped('says how closely its pages are looked at'),
      file_id: KEPT,
      prompt_cache_breakpoint: HINT,
    },
    'content[input_audio]': each(carried('the spoken words'), 'type', 'input_audio'),
    input_audio: each(carried('the spoken words'), 'data', 'format'),
    'tools[function]': {
      ...each(TOOL, 'type', 'name', 'description', 'parameters', 'strict'),
      defer_loading: GIVEN,
      output_schema: dropped(NO_PROGRAMS),
      allowed_callers: CALLERS,
    },
    'tools[custom]': {
      ...each(TOOL, 'type', 'name', 'description', 'format'),
      defer_loading: GIVEN,
      allowed_callers: CALLERS,
    },
    'tools[namespace]': each(carried('the tools in it'), 'type', 'name', 'description', 'tools'),
    'tools[tool_search]': {
      ...each(carried('the search'), 'type', 'description', 'parameters'),
      execution: carried('where it runs; only `client` is'),
    },
    text: {
      format: carried('the form of the answer', 'outputFormat'),
      verbosity: carried('dropped where the dialect has no place for it', 'verbosity'),
    },
    'text.format': each(FORM, 'type', 'name', 'description', 'schema', 'strict'),
    reasoning: {
      effort: carried('how much to reason'),
      ...each(carried('whether it is shown'), 'summary', 'generate_summary'),
      context: dropped('says which of its own reasoning the model is shown'),
      mode: refusedUnless(['standard'], 'asks for a mode of its vendor'),
    },
    tool_choice: each(carried('the choice'), 'type', 'name'),
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

export const RULES = new TranslationRules(RESPONSES_REQUEST);
