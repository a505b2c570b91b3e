import { asObject, type JsonObject } from '../../base/json-values';
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
  MAX_TOOL_USES,
  outside,
  priced,
  refused,
  refusedUnless,
  SPEECH,
  STRING,
  STRING_OR_LIST,
  TEXT_PART,
} from '../request-rows';
import type { FormedTool, PartRow, RequestTable, ToolRow, ToolRule } from '../request-table';
import { OPENAI_MEMBERS } from '../shared-members';
import { TranslationRules } from '../translation-rules';

const SUMMARY = refused('is a summary that its vendor alone can read or make');
const KEPT = refused('names something that its vendor keeps');
const MARK = dropped('identifies items, or says how far they are complete');
const CALL = carried('the call');
const RESULT = carried('what the tool says');
const TOOL = carried('the tool');
const FORM = carried('the form of the answer');
const NO_PROGRAMS = 'is for programs that run at its vendor';
/** The only accepted `caller` of a tool call: the model itself, not a program that runs at the vendor. */
const CALLER = refusedUnless([{ type: 'direct' }], NO_PROGRAMS);

/** The members that several items, parts and tools share. */
const MARKS = each(MARK, 'id', 'status');
const CALLED = { ...MARKS, ...each(CALL, 'type', 'call_id', 'name', 'namespace'), caller: CALLER };
const SEARCHED = {
  ...MARKS,
  ...each(carried('the search'), 'type', 'call_id'),
  execution: carried('where it runs; only `client` is'),
};
const OF_MEDIA = { file_id: KEPT, prompt_cache_breakpoint: CACHE_HINT };
const OF_TOOL = {
  ...each(TOOL, 'type', 'name', 'description'),
  defer_loading: dropped('the tool is given at once'),
  allowed_callers: refusedUnless([['direct'], []], NO_PROGRAMS),
};

const OF_VENDOR_TOOL = refused('belongs to a tool that other dialects do not have');
const SAID_BY_VENDOR: PartRow = { ...ECHO, ...OF_VENDOR_TOOL };
/** Marks a content part or item that has only output of the model itself, and no result of the vendor's tools. */
const WRITTEN = { isWritten: true } as const;
const FOUND: PartRow = {
  ...outside('the vendor reads what it found then'),
  ...refused('has what its vendor found, which is not in the request'),
};
const IMAGES = { sources: { data: IMAGE.data, url: IMAGE.url, file_id: IMAGE.file } };

const DEFINED: ToolRow = { ...AT_CLIENT, overheads: 0, ...carried('a tool') };
const UNREPORTED: ToolRow = {
  ...priced('runs at the vendor, which reports no price'),
  leaves: 'keep',
  overheads: 1,
  ...AT_VENDOR,
};
const WEB_SEARCH = {
  ...priced('runs at the vendor'),
  leaves: 'fetch',
  overheads: 1,
  meter: 'webSearch',
  isLimited: true,
  ...AT_VENDOR,
} as const;

/**
 * The members of Responses requests, as the npm package `openai` declares them. If a client repeats earlier answers, translation drops
 * their unknown members. Translation adds no `strict` to a function without `strict`, because the vendor does not strictly enforce the
 * schema of such a function.
 */
export const RESPONSES_TABLE: RequestTable = {
  members: {
    ...OPENAI_MEMBERS,
    input: {
      ...bounded('the conversation'),
      ...carried('the conversation', 'isBegun'),
      is: STRING_OR_LIST,
      isRequired: true,
      replacedBy: ['previous_response_id', 'conversation', 'prompt'],
    },
    instructions: { ...bounded('the system prompt'), ...carried('the instructions'), is: STRING },
    text: { ...bounded('a schema is read'), ...FORM },
    max_output_tokens: { ...bounded('limits the answer'), ...carried('limits the answer', 'maxTokens'), is: count(1) },
    max_tool_calls: {
      ...bounded('limits the tools that run at the vendor'),
      ...dropped('limits tools that run at its vendor, and those are refused'),
      is: count(0, MAX_TOOL_USES),
    },
    client_metadata: { ...free('is not read by the model'), ...dropped('is not read by the model') },
    include: { ...free('says what is shown'), ...dropped('what can be shown of the answer is shown') },
    reasoning: {
      ...free('counts towards the limit'),
      ...carried('written as the setting `reasoning` of the upstream or model says', 'reasoning'),
    },
    truncation: { ...free('can only shorten the input'), ...dropped('the conversation is sent whole') },
    context_management: { ...COMPACTION, harmless: [[]], ...dropped('the conversation is sent whole') },
  },
  roles: ['user', 'assistant', 'system', 'developer'],
  nullIsAbsent: true,
  items: {
    message: { ...TEXT_PART, ...WRITTEN, ...carried('what one side says') },
    function_call: { ...ECHO, ...WRITTEN, ...carried('a call of a tool', 'tool_call') },
    custom_tool_call: { ...ECHO, ...WRITTEN, ...carried('a call of a tool') },
    function_call_output: { ...TEXT_PART, ...carried('what a tool says', 'tool_result') },
    custom_tool_call_output: { ...TEXT_PART, ...carried('what a tool says') },
    reasoning: {
      ...WRITTEN,
      sources: { encrypted_content: ECHO, nothing: outside('the vendor reads the reasoning that it has kept') },
      ...carried('goes back to the upstream that made it, and to no other'),
    },
    additional_tools: { ...TEXT_PART, ...carried('more tools') },
    tool_search_call: { ...ECHO, ...WRITTEN, ...carried('a search for tools that the client runs') },
    tool_search_output: { ...TEXT_PART, ...carried('a search for tools that the client runs') },
    item_reference: { ...outside('an item of an earlier answer'), names: 'item', ...KEPT },
    compaction: { ...ECHO, ...SUMMARY },
    // developers.openai.com/api/docs/guides/compaction, 2026-11: Codex ends its input with the item `compaction_trigger` to request a summary.
    compaction_trigger: { ...COMPACTION, ...SUMMARY },
    // github.com/openai/codex/pull/22809, 2026-05: earlier versions of Codex used the item `context_compaction` to request a summary and to send a
    // summary back.
    context_compaction: { sources: { encrypted_content: ECHO, nothing: COMPACTION }, ...SUMMARY },
    ...each(FOUND, 'web_search_call', 'file_search_call'),
    code_interpreter_call: { ...outside('the vendor reads what its container holds'), ...OF_VENDOR_TOOL },
    image_generation_call: { ...outside('the vendor reads the image that it has kept'), ...OF_VENDOR_TOOL },
    ...each(
      { ...SAID_BY_VENDOR, ...WRITTEN },
      'computer_call',
      'local_shell_call',
      'shell_call',
      'apply_patch_call',
      'mcp_approval_request',
    ),
    ...each(
      SAID_BY_VENDOR,
      'computer_call_output',
      'local_shell_call_output',
      'shell_call_output',
      'apply_patch_call_output',
      'mcp_list_tools',
      'mcp_call',
      'mcp_approval_response',
      'program',
      'program_output',
    ),
  },
  parts: {
    input_text: { ...TEXT_PART, ...carried('text', 'text') },
    output_text: { ...TEXT_PART, ...carried('text') },
    refusal: { ...TEXT_PART, ...carried('a refusal', 'refusal') },
    // The code that reads the surrounding reasoning item also translates its parts `summary_text` and `reasoning_text`.
    summary_text: TEXT_PART,
    reasoning_text: TEXT_PART,
    input_image: { ...IMAGES, ...carried('an image', 'image') },
    computer_screenshot: { ...IMAGES, ...OF_VENDOR_TOOL },
    input_file: {
      sources: { file_data: DOCUMENT.data, url: DOCUMENT.url, data: DOCUMENT.data, file_id: DOCUMENT.file },
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
    mcp: {
      ...outside('the vendor asks the MCP server'),
      leaves: 'pass on',
      overheads: 1,
      isLimited: true,
      ...AT_VENDOR,
    },
    ...each(UNREPORTED, 'image_generation', 'programmatic_tool_calling'),
  },
  nested: {
    'input[message]': {
      ...MARKS,
      ...each(carried('what one side says'), 'type', 'content'),
      role: carried('what one side says', 'system'),
      ...each(MARK, 'phase', 'end_turn'),
    },
    'input[function_call]': {
      ...CALLED,
      arguments: CALL,
      parsed_arguments: dropped('programs add it to answers that they send back'),
    },
    'input[custom_tool_call]': { ...CALLED, input: CALL },
    'input[function_call_output]': { ...MARKS, ...each(RESULT, 'type', 'call_id', 'output'), caller: CALLER },
    'input[custom_tool_call_output]': {
      ...MARKS,
      ...each(RESULT, 'type', 'call_id', 'output'),
      name: MARK,
      caller: CALLER,
    },
    'input[reasoning]': {
      ...MARKS,
      ...each(carried('what is shown of it'), 'type', 'summary'),
      encrypted_content: carried('the signature'),
      content: dropped('its summary is what is shown'),
    },
    'input[additional_tools]': { ...each(carried('more tools'), 'type', 'tools'), ...each(MARK, 'id', 'role') },
    'input[tool_search_call]': { ...SEARCHED, arguments: carried('the search') },
    'input[tool_search_output]': { ...SEARCHED, tools: carried('the tools that were found') },
    'content[input_text]': { ...each(carried('text'), 'type', 'text'), prompt_cache_breakpoint: CACHE_HINT },
    'content[output_text]': {
      ...each(carried('text'), 'type', 'text'),
      annotations: dropped('say where earlier answers have something from'),
      ...each(dropped('say something of earlier answers'), 'logprobs', 'parsed'),
    },
    'content[refusal]': each(carried('a refusal'), 'type', 'refusal'),
    'content[input_image]': {
      ...each(carried('the image'), 'type', 'image_url'),
      detail: carried('how closely it is looked at; `original` is dropped'),
      ...OF_MEDIA,
    },
    'content[input_file]': {
      ...each(carried('the document'), 'type', 'file_data', 'file_url', 'filename'),
      detail: dropped('says how closely its pages are looked at'),
      ...OF_MEDIA,
    },
    'content[input_audio]': each(carried('the spoken words'), 'type', 'input_audio'),
    input_audio: each(carried('the spoken words'), 'data', 'format'),
    'tools[function]': { ...OF_TOOL, ...each(TOOL, 'parameters', 'strict'), output_schema: dropped(NO_PROGRAMS) },
    'tools[custom]': { ...OF_TOOL, format: TOOL },
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
      },
    },
  },
};

export const RESPONSES_RULES = new TranslationRules(RESPONSES_TABLE);

function shellForm({ environment }: JsonObject): string {
  return asObject(environment)?.['type'] === 'local' ? 'local' : 'container';
}

function searchForm({ execution }: JsonObject): string {
  return execution === 'client' ? 'client' : 'server';
}

/** Returns the rules for the code interpreter tool. Vendors price its container by memory size; the meter `codeInterpreter` prices the usual size, 1 GB. */
function codeInterpreter(search: ToolRule, unpriced: ToolRule): FormedTool {
  const usual: ToolRule = { ...search, leaves: 'keep', meter: 'codeInterpreter' };
  return {
    forms: {
      usual,
      files: { ...usual, names: 'file_id' },
      'named container': { ...usual, names: 'container' },
      'other size': unpriced,
    },
    formOf: ({ container }) => {
      if (typeof container === 'string') return 'named container';
      const { type, memory_limit: size, file_ids } = asObject(container) ?? {};
      if (type !== 'auto') return undefined;
      if ((size ?? '1g') !== '1g') return 'other size';
      const files = file_ids ?? [];
      return Array.isArray(files) && files.length === 0 ? 'usual' : 'files';
    },
  };
}
