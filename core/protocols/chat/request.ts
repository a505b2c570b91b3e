import { MAX_CHOICES } from '../../catalog/price';
import type { TokenMeter } from '../../catalog/usage';
import {
  bounded,
  CACHE_HINT,
  carried,
  count,
  DOCUMENT,
  dropped,
  each,
  free,
  IMAGE,
  kept,
  LIST,
  OBJECT,
  priced,
  refused,
  refusedUnless,
  SPEECH,
  STRING_OR_LIST,
  TEXT_PART,
} from '../request-rows';
import type { Needs, RequestTable } from '../request-table';
import { OPENAI_MEMBERS } from '../shared-members';
import { TranslationRules } from '../translation-rules';
import { VENDOR_SEARCH } from '../vendor-switches';

const AT_VENDOR = refused('names something that one vendor keeps');
const ADDED = dropped('programs add it to answers that they send back');
const UNSIGNED = dropped('no upstream takes reasoning without a signature');
const SOURCES = dropped('says where earlier answers have something from');
const CALL = carried('the call');
const TOOL = carried('the tool');
const TOOL_USE = carried('says how tools are used');
const FORM = carried('the form of the answer');
const MEDIA = 'images, documents and sounds';
const OTHER_SAMPLING = { ...free('sampling'), ...dropped('other dialects have no such sampling') };
const OTHER_REASONING = {
  ...free('reasoning is output'),
  ...refused('is the word of one vendor; send `reasoning_effort` instead'),
};
const SPOKEN = priced('spoken answers have prices of their own');

/** The members of Chat requests: those of the npm package openai, those that OpenAI's newer protocol adds, and those of other vendors. */
export const CHAT_TABLE: RequestTable = {
  members: {
    ...OPENAI_MEMBERS,
    messages: { ...bounded('the conversation'), ...carried('the conversation', 'isBegun'), is: LIST, isRequired: true },
    functions: {
      ...bounded('definitions of tools'),
      adds: 'tools',
      ...refused('is the form that came before `tools`; send `tools` instead'),
    },
    max_tokens: {
      ...bounded('limits the answer; the larger limit counts'),
      ...carried('limits the answer; the smaller limit counts', 'maxTokens'),
      is: count(1),
    },
    max_completion_tokens: {
      ...bounded('limits the answer; the larger limit counts'),
      ...carried('limits the answer; the smaller limit counts'),
      is: count(1),
    },
    n: {
      ...bounded('multiplies the answers'),
      ...carried('the number of answers', 'choices'),
      is: count(1, MAX_CHOICES),
    },
    response_format: { ...bounded('a schema is read'), ...carried('the form of the answer', 'outputFormat') },
    prediction: {
      ...bounded('what the answer does not use costs as output'),
      adds: 'prediction',
      ...refused('has no place in other dialects'),
    },
    system: {
      ...bounded('some upstreams read it'),
      ...refused('is no member of Chat; send a message with the role `system` instead'),
      is: STRING_OR_LIST,
    },
    frequency_penalty: { ...free('sampling'), ...carried('sampling', 'frequencyPenalty') },
    function_call: {
      ...free('says which tools are used'),
      ...refused('is the form that came before `tools`; send `tools` instead'),
    },
    logit_bias: OTHER_SAMPLING,
    logprobs: { ...free('says what is shown'), ...dropped('the answer has no probabilities') },
    presence_penalty: { ...free('sampling'), ...carried('sampling', 'presencePenalty') },
    reasoning_effort: {
      ...free('counts towards the limit'),
      ...carried('written as the setting `reasoning` of the upstream or model says', 'reasoning'),
    },
    seed: { ...free('sampling'), ...carried('sampling; dropped where the dialect has no place for it', 'seed') },
    stop: { ...free('can only shorten the answer'), ...carried('ends the answer', 'stop') },
    stream_options: {
      ...free('says how the answer is sent'),
      ...dropped('a translated stream always has its usage'),
      is: OBJECT,
    },
    top_k: {
      ...free('sampling, at upstreams that have it'),
      ...carried('sampling; dropped where the dialect has no place for it', 'topK'),
    },
    // The source of the next member: openrouter.ai/docs/api_reference/parameters, 2026-11.
    top_a: OTHER_SAMPLING,
    // The source of the next members: docs.vllm.ai, "OpenAI-compatible server", extra parameters, 2026-11. SGLang has most of them.
    ...each(
      OTHER_SAMPLING,
      'min_p',
      'repetition_penalty',
      'length_penalty',
      'min_tokens',
      'ignore_eos',
      'stop_token_ids',
    ),
    // The source of the next members: alibabacloud.com/help/en/model-studio/deep-thinking, 2026-06.
    ...each(OTHER_REASONING, 'enable_thinking', 'thinking_budget'),
    // The source of the next member: api-docs.deepseek.com/guides/thinking_mode, 2026-11. Moonshot and Z.AI accept the member, too.
    thinking: OTHER_REASONING,
    // The source of the next members: openrouter.ai/docs/guides/best-practices/reasoning-tokens, 2026-11.
    ...each(OTHER_REASONING, 'reasoning', 'include_reasoning'),
    verbosity: {
      ...free('counts towards the limit'),
      ...carried('dropped where the dialect has no place for it', 'verbosity'),
    },
    web_search_options: VENDOR_SEARCH,
    audio: { ...SPOKEN, needs: () => ({ meters: ['audioOutput'] }), ...refused('asks for a spoken answer') },
    modalities: { ...SPOKEN, needs: spokenOrDrawn, ...refusedUnless([['text'], []], 'asks for more than text') },
    thread: { ...kept('thread', 'a conversation at the vendor'), leaves: 'keep', ...AT_VENDOR },
    container: { ...kept('container', 'files at the vendor'), leaves: 'keep', ...AT_VENDOR },
  },
  roles: ['user', 'assistant', 'tool', 'system', 'developer', 'function'],
  nullIsAbsent: true,
  parts: {
    text: { ...TEXT_PART, ...carried('what is said') },
    refusal: { ...TEXT_PART, ...carried('what is said') },
    image_url: { sources: { data: IMAGE.data, url: IMAGE.url }, ...carried(MEDIA, 'image') },
    file: { sources: { file_data: DOCUMENT.data, file_id: DOCUMENT.file }, ...carried(MEDIA, 'document') },
    input_audio: { ...SPEECH, ...carried(MEDIA, 'audio') },
  },
  tools: each(
    { class: 'free', why: 'runs at the client', overheads: 0, ...carried('a tool') } as const,
    'function',
    'custom',
  ),
  nested: {
    'messages[]': {
      role: carried('says which side speaks', 'system'),
      content: carried('what is said', 'text'),
      refusal: carried('what is said', 'refusal'),
      tool_calls: carried('what is said', 'tool_call'),
      ...each(UNSIGNED, 'reasoning_content', 'reasoning', 'reasoning_details'),
      annotations: SOURCES,
      ...each(ADDED, 'parsed', 'id', 'provider_specific_fields'),
      cache_control: CACHE_HINT,
      name: refused('names one of several speakers, which other dialects do not know'),
      audio: refused('names a spoken answer that one vendor keeps'),
      function_call: refused('is the form that came before `tool_calls`; send `tool_calls` instead'),
      prefix: refusedUnless([false], 'asks to continue this message'),
    },
    'messages[tool]': {
      role: carried('says which side speaks'),
      content: carried('what the tool says'),
      tool_call_id: carried('what the tool says', 'tool_result'),
      name: dropped('repeats the name of the tool'),
      cache_control: CACHE_HINT,
    },
    'content[]': {
      type: carried('the kind of the part'),
      ...each(carried('the part itself'), 'text', 'refusal', 'image_url', 'input_audio', 'file'),
      ...each(CACHE_HINT, 'cache_control', 'prompt_cache_breakpoint'),
      annotations: SOURCES,
    },
    image_url: each(carried('the image'), 'url', 'detail'),
    input_audio: each(carried('the spoken words'), 'data', 'format'),
    file: { ...each(carried('the document'), 'file_data', 'filename'), file_id: AT_VENDOR },
    'tool_calls[]': {
      ...each(CALL, 'id', 'type', 'function', 'custom'),
      index: dropped('the place of the call says it'),
      // A member that Gemini's Chat endpoint adds: ai.google.dev/gemini-api/docs/thought-signatures, 2026-11.
      extra_content: dropped('is good at its vendor alone'),
      provider_specific_fields: ADDED,
    },
    'tool_calls[].function': { ...each(CALL, 'name', 'arguments'), parsed_arguments: ADDED },
    'tool_calls[].custom': each(CALL, 'name', 'input'),
    'tools[]': { ...each(TOOL, 'type', 'function', 'custom'), cache_control: CACHE_HINT },
    'tools[].function': { ...each(TOOL, 'name', 'description', 'parameters', 'strict'), cache_control: CACHE_HINT },
    'tools[].custom': each(TOOL, 'name', 'description', 'format'),
    tool_choice: each(TOOL_USE, 'type', 'function', 'custom'),
    'tool_choice.function': { name: TOOL_USE },
    'tool_choice.custom': { name: TOOL_USE },
    response_format: each(FORM, 'type', 'json_schema'),
    'response_format.json_schema': each(FORM, 'name', 'description', 'schema', 'strict'),
  },
  // Chat creates no vendor resources: a call cannot name a stored completion, and the gateway serves no spoken answers.
  kept: {},
};

/** Returns which meters need a price for the kinds of output that `modalities` requests; undefined for an unknown kind. */
function spokenOrDrawn(value: unknown): Needs | undefined {
  if (!Array.isArray(value) || !value.every((kind) => ['text', 'audio', 'image'].includes(kind))) return undefined;
  const meters: TokenMeter[] = [];
  if (value.includes('audio')) meters.push('audioOutput');
  if (value.includes('image')) meters.push('imageOutput');
  return { meters };
}

export const CHAT_RULES = new TranslationRules(CHAT_TABLE);
