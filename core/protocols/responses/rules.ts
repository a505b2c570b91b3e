import { carried, dropped, inside, type Rule, Rules, refused, refusedUnless } from '../rule';

const KEPT = 'names something that its vendor keeps';
const AT_VENDOR = 'is a tool that runs at its vendor';
const VENDORS_OWN = 'is a tool that its vendor defines';
const OF_VENDOR_TOOL = 'belongs to a tool that other dialects do not have';
const COMPACTION = 'is a summary that its vendor alone can read or make';
const MARK = 'identifies items, or says how far they are complete';
const HINT = 'is a hint for the cache of its vendor';
const NO_PROGRAMS = 'is for programs that run at its vendor';

const TOP_LEVEL: readonly Rule[] = [
  ...carried('the upstream has its own name of the model', 'model'),
  ...carried('the conversation', 'input'),
  ...carried('the instructions', 'instructions'),
  ...carried('limits the answer', 'max_output_tokens'),
  ...carried('says how the answer is sent', 'stream'),
  ...carried('sampling', 'temperature', 'top_p'),
  ...carried('the tools', 'tools'),
  ...carried('says how tools are used', 'tool_choice', 'parallel_tool_calls'),
  ...carried('the form of the answer', 'text'),
  ...carried('written as the setting `reasoning` of the upstream or model says', 'reasoning'),
  ...carried('dropped where the dialect has no place for it', 'prompt_cache_key'),
  ...carried('names the person; dropped where the dialect has no place for it', 'user', 'safety_identifier'),
  ...dropped('the answer has no probabilities', 'top_logprobs'),
  ...dropped('what can be shown of the answer is shown', 'include'),
  ...dropped('nothing is kept of a translated answer', 'store'),
  ...dropped('is not read by the model', 'metadata', 'client_metadata'),
  ...dropped('the conversation is sent whole', 'truncation', 'context_management'),
  ...dropped('limits tools that run at its vendor, and those are refused', 'max_tool_calls'),
  ...dropped(HINT, 'prompt_cache_options', 'prompt_cache_retention'),
  ...dropped('a translated stream has its usage and no padding', 'stream_options'),
  ...dropped('reserved for the gateway', 'priority'),
  refusedUnless('service_tier', ['auto', 'default'], 'asks for a tier of its vendor'),
  refusedUnless('speed', ['standard'], 'asks for a speed of its vendor'),
  refusedUnless('inference_geo', ['global'], 'asks for a region of its vendor'),
  refusedUnless('background', [false], 'asks for an answer after the call'),
  ...refused('asks its vendor to look at the conversation', 'moderation'),
  ...refused(KEPT, 'previous_response_id', 'conversation', 'prompt'),
];

const ITEMS: readonly Rule[] = [
  ...carried('what one side says', 'input[message]'),
  ...carried('a call of a tool', 'input[function_call]', 'input[custom_tool_call]'),
  ...carried('what a tool says', 'input[function_call_output]', 'input[custom_tool_call_output]'),
  ...carried('goes back to the upstream that made it, and to no other', 'input[reasoning]'),
  ...carried('more tools', 'input[additional_tools]'),
  ...carried('a search for tools that the client runs', 'input[tool_search_call]', 'input[tool_search_output]'),
  ...refused(KEPT, 'input[item_reference]'),
  ...refused(COMPACTION, 'input[compaction]', 'input[compaction_trigger]'),
  ...refused('has what its vendor found, which is not in the request', 'input[web_search_call]'),
  ...refused('has what its vendor found, which is not in the request', 'input[file_search_call]'),
  ...refused(OF_VENDOR_TOOL, 'input[code_interpreter_call]', 'input[image_generation_call]'),
  ...refused(OF_VENDOR_TOOL, 'input[computer_call]', 'input[computer_call_output]', 'content[computer_screenshot]'),
  ...refused(OF_VENDOR_TOOL, 'input[local_shell_call]', 'input[local_shell_call_output]'),
  ...refused(OF_VENDOR_TOOL, 'input[shell_call]', 'input[shell_call_output]'),
  ...refused(OF_VENDOR_TOOL, 'input[apply_patch_call]', 'input[apply_patch_call_output]'),
  ...refused(OF_VENDOR_TOOL, 'input[mcp_list_tools]', 'input[mcp_call]'),
  ...refused(OF_VENDOR_TOOL, 'input[mcp_approval_request]', 'input[mcp_approval_response]'),
  ...refused(OF_VENDOR_TOOL, 'input[program]', 'input[program_output]'),
];

/** The value in every call that the model made directly, not through a program at the vendor. */
const DIRECT = [{ type: 'direct' }];

const IN_ITEMS: readonly Rule[] = [
  ...carried('what one side says', ...inside('input[message]', 'type', 'role', 'content')),
  ...dropped(MARK, ...inside('input[message]', 'id', 'status', 'phase', 'end_turn')),
  ...carried('the call', ...inside('input[function_call]', 'type', 'call_id', 'name', 'namespace', 'arguments')),
  ...dropped(MARK, ...inside('input[function_call]', 'id', 'status')),
  ...dropped('programs add it to answers that they send back', 'input[function_call].parsed_arguments'),
  refusedUnless('input[function_call].caller', DIRECT, NO_PROGRAMS),
  ...carried('the call', ...inside('input[custom_tool_call]', 'type', 'call_id', 'name', 'namespace', 'input')),
  ...dropped(MARK, ...inside('input[custom_tool_call]', 'id', 'status')),
  refusedUnless('input[custom_tool_call].caller', DIRECT, NO_PROGRAMS),
  ...carried('what the tool says', ...inside('input[function_call_output]', 'type', 'call_id', 'output')),
  ...dropped(MARK, ...inside('input[function_call_output]', 'id', 'status')),
  refusedUnless('input[function_call_output].caller', DIRECT, NO_PROGRAMS),
  ...carried('what the tool says', ...inside('input[custom_tool_call_output]', 'type', 'call_id', 'output')),
  ...dropped(MARK, ...inside('input[custom_tool_call_output]', 'id', 'status', 'name')),
  refusedUnless('input[custom_tool_call_output].caller', DIRECT, NO_PROGRAMS),
  ...carried('what is shown of it', ...inside('input[reasoning]', 'type', 'summary')),
  ...carried('the signature', 'input[reasoning].encrypted_content'),
  ...dropped('its summary is what is shown', 'input[reasoning].content'),
  ...dropped(MARK, ...inside('input[reasoning]', 'id', 'status')),
  ...carried('more tools', ...inside('input[additional_tools]', 'type', 'tools')),
  ...dropped(MARK, ...inside('input[additional_tools]', 'id', 'role')),
  ...carried('the search', ...inside('input[tool_search_call]', 'type', 'call_id', 'arguments')),
  ...dropped(MARK, ...inside('input[tool_search_call]', 'id', 'status')),
  ...carried('where it runs; only `client` is', 'input[tool_search_call].execution'),
  ...carried('the tools that were found', ...inside('input[tool_search_output]', 'type', 'call_id', 'tools')),
  ...dropped(MARK, ...inside('input[tool_search_output]', 'id', 'status')),
  ...carried('where it ran; only `client` is', 'input[tool_search_output].execution'),
];

const PARTS: readonly Rule[] = [
  ...carried('text', 'content[input_text]', 'content[output_text]'),
  ...carried('a refusal', 'content[refusal]'),
  ...carried('an image', 'content[input_image]'),
  ...carried('a document', 'content[input_file]'),
  ...carried('spoken words', 'content[input_audio]'),
  ...carried('text', ...inside('content[input_text]', 'type', 'text')),
  ...dropped(HINT, 'content[input_text].prompt_cache_breakpoint'),
  ...carried('text', ...inside('content[output_text]', 'type', 'text')),
  ...dropped('say where earlier answers have something from', 'content[output_text].annotations'),
  ...dropped('say something of earlier answers', ...inside('content[output_text]', 'logprobs', 'parsed')),
  ...carried('a refusal', ...inside('content[refusal]', 'type', 'refusal')),
  ...carried('the image', ...inside('content[input_image]', 'type', 'image_url')),
  ...carried('how closely it is looked at; `original` is dropped', 'content[input_image].detail'),
  ...refused(KEPT, 'content[input_image].file_id'),
  ...dropped(HINT, 'content[input_image].prompt_cache_breakpoint'),
  ...carried('the document', ...inside('content[input_file]', 'type', 'file_data', 'file_url', 'filename')),
  ...dropped('says how closely its pages are looked at', 'content[input_file].detail'),
  ...refused(KEPT, 'content[input_file].file_id'),
  ...dropped(HINT, 'content[input_file].prompt_cache_breakpoint'),
  ...carried('the spoken words', ...inside('content[input_audio]', 'type', 'input_audio')),
  ...carried('the spoken words', 'input_audio.data', 'input_audio.format'),
];

const TOOLS: readonly Rule[] = [
  ...carried('a tool', 'tools[function]', 'tools[custom]'),
  ...carried('the tools in it get longer names, and their own ones again in answers', 'tools[namespace]'),
  ...carried('becomes a function where it runs at the client', 'tools[tool_search]'),
  ...refused(AT_VENDOR, 'tools[web_search]', 'tools[web_search_2025_08_26]', 'tools[web_search_preview]'),
  ...refused(AT_VENDOR, 'tools[web_search_preview_2025_03_11]', 'tools[file_search]', 'tools[code_interpreter]'),
  ...refused(AT_VENDOR, 'tools[mcp]', 'tools[image_generation]', 'tools[programmatic_tool_calling]'),
  ...refused(VENDORS_OWN, 'tools[apply_patch]', 'tools[computer]', 'tools[computer_use_preview]'),
  ...refused(VENDORS_OWN, 'tools[local_shell]', 'tools[shell]'),
  ...carried('the tool', ...inside('tools[function]', 'type', 'name', 'description', 'parameters', 'strict')),
  ...dropped('the tool is given at once', 'tools[function].defer_loading'),
  ...dropped(NO_PROGRAMS, 'tools[function].output_schema'),
  refusedUnless('tools[function].allowed_callers', [['direct'], []], NO_PROGRAMS),
  ...carried('the tool', ...inside('tools[custom]', 'type', 'name', 'description', 'format')),
  ...dropped('the tool is given at once', 'tools[custom].defer_loading'),
  refusedUnless('tools[custom].allowed_callers', [['direct'], []], NO_PROGRAMS),
  ...carried('the tools in it', ...inside('tools[namespace]', 'type', 'name', 'description', 'tools')),
  ...carried('the search', ...inside('tools[tool_search]', 'type', 'description', 'parameters')),
  ...carried('where it runs; only `client` is', 'tools[tool_search].execution'),
];

const SETTINGS: readonly Rule[] = [
  ...carried('the form of the answer', 'text.format'),
  ...carried('dropped where the dialect has no place for it', 'text.verbosity'),
  ...carried('the form of the answer', ...inside('text.format', 'type', 'name', 'description', 'schema', 'strict')),
  ...carried('how much to reason', 'reasoning.effort'),
  ...carried('whether it is shown', 'reasoning.summary', 'reasoning.generate_summary'),
  ...dropped('says which of its own reasoning the model is shown', 'reasoning.context'),
  refusedUnless('reasoning.mode', ['standard'], 'asks for a mode of its vendor'),
  ...carried('the choice', 'tool_choice.type', 'tool_choice.name'),
];

/**
 * The fate of everything in a Responses request. Unknown members of earlier answers that a client repeats are dropped. A function
 * without `strict` stays as it is, because the vendor only tries to hold the model to such a schema.
 */
export const RULES = new Rules([...TOP_LEVEL, ...ITEMS, ...IN_ITEMS, ...PARTS, ...TOOLS, ...SETTINGS]);
