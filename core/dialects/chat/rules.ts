/** What becomes of one member of a request when it is carried to another dialect. */
export interface Rule {
  /** The member's name, with the place in which it stands where that is not the top level. */
  readonly member: string;
  /** `carried`: the upstream gets it, unless its dialect has no place for it and its writer refuses or drops it. */
  readonly fate: 'carried' | 'dropped' | 'refused';
  readonly why: string;
  /** The values of a refused member that mean nothing special: they are dropped. */
  readonly unless?: readonly unknown[];
}

const carried = (why: string, ...members: readonly string[]) => rules('carried', why, members);
const dropped = (why: string, ...members: readonly string[]) => rules('dropped', why, members);
const refused = (why: string, ...members: readonly string[]) => rules('refused', why, members);

function rules(fate: Rule['fate'], why: string, members: readonly string[]): readonly Rule[] {
  return members.map((member) => ({ member, fate, why }));
}

const AT_VENDOR = 'names something that one vendor keeps';

/** What becomes of each member of a Chat request. A member without a rule is refused; `null` always means that a member is absent. */
export const RULES: readonly Rule[] = [
  ...carried('the upstream has its own name of the model', 'model'),
  ...carried('the conversation', 'messages'),
  ...carried('limits the answer; the smaller limit counts', 'max_tokens', 'max_completion_tokens'),
  ...carried('the number of answers', 'n'),
  ...carried('says how the answer is sent', 'stream'),
  ...carried('ends the answer', 'stop'),
  ...carried('sampling', 'temperature', 'top_p', 'frequency_penalty', 'presence_penalty'),
  ...carried('sampling; dropped where the dialect has no place for it', 'seed', 'top_k'),
  ...carried('the tools', 'tools'),
  ...carried('says how tools are used', 'tool_choice', 'parallel_tool_calls'),
  ...carried('the form of the answer', 'response_format'),
  ...carried('told as the setting `reasoning` of the upstream or model says', 'reasoning_effort'),
  ...carried('dropped where the dialect has no place for it', 'verbosity', 'prompt_cache_key'),
  ...carried('names the person; dropped where the dialect has no place for it', 'user', 'safety_identifier'),
  ...dropped('other dialects have no such sampling', 'logit_bias'),
  ...dropped('the answer has no probabilities', 'logprobs', 'top_logprobs'),
  ...dropped('is not read by the model', 'metadata', 'store'),
  ...dropped('a hint for the cache', 'prompt_cache_options', 'prompt_cache_retention'),
  ...dropped('a translated stream always tells its usage', 'stream_options'),
  ...dropped('reserved for the gateway', 'priority'),
  ...refused('is the form that came before `tools`; send `tools` instead', 'functions', 'function_call'),
  ...refused('has no place in other dialects', 'prediction', 'moderation'),
  ...refused('is no member of Chat; send a message with the role `system` instead', 'system'),
  {
    member: 'service_tier',
    fate: 'refused',
    why: 'asks for a tier with a price of its own',
    unless: ['auto', 'default', 'standard_only'],
  },
  { member: 'speed', fate: 'refused', why: 'asks for a speed with a price of its own', unless: ['standard'] },
  {
    member: 'inference_geo',
    fate: 'refused',
    why: 'asks for a region that other vendors do not know',
    unless: ['global'],
  },
  ...refused('asks for searches that run at one vendor', 'web_search_options'),
  ...refused('asks for a spoken answer', 'audio'),
  { member: 'modalities', fate: 'refused', why: 'asks for more than text', unless: [['text'], []] },
  ...refused(AT_VENDOR, 'previous_response_id', 'conversation', 'prompt', 'thread', 'container'),
  { member: 'background', fate: 'refused', why: 'asks for an answer after the call', unless: [false] },

  ...carried('says which side speaks', 'messages[].role'),
  ...carried('what is said', 'messages[].content', 'messages[].refusal', 'messages[].tool_calls'),
  ...dropped('reasoning without a signature is told to nobody', 'messages[].reasoning_content'),
  ...dropped('reasoning without a signature is told to nobody', 'messages[].reasoning', 'messages[].reasoning_details'),
  ...dropped('says where earlier answers have something from', 'messages[].annotations'),
  ...dropped('programs add it to answers that they send back', 'messages[].parsed', 'messages[].id'),
  ...dropped('programs add it to answers that they send back', 'messages[].provider_specific_fields'),
  ...dropped('a hint for the cache', 'messages[].cache_control'),
  ...refused('names one of several speakers, which other dialects do not know', 'messages[].name'),
  ...refused('names a spoken answer that one vendor keeps', 'messages[].audio'),
  ...refused('is the form that came before `tool_calls`; send `tool_calls` instead', 'messages[].function_call'),
  ...carried('says which side speaks', 'messages[tool].role'),
  ...carried('what the tool says', 'messages[tool].content', 'messages[tool].tool_call_id'),
  ...dropped('repeats the name of the tool', 'messages[tool].name'),
  ...dropped('a hint for the cache', 'messages[tool].cache_control'),
  { member: 'messages[].prefix', fate: 'refused', why: 'asks to continue this message', unless: [false] },

  ...carried('the kind of the part', 'content[].type'),
  ...carried('the part itself', 'content[].text', 'content[].refusal', 'content[].image_url', 'content[].input_audio'),
  ...carried('the part itself', 'content[].file'),
  ...dropped('a hint for the cache', 'content[].cache_control', 'content[].prompt_cache_breakpoint'),
  ...dropped('says where earlier answers have something from', 'content[].annotations'),
  ...carried('the image', 'image_url.url', 'image_url.detail'),
  ...carried('the spoken words', 'input_audio.data', 'input_audio.format'),
  ...carried('the document', 'file.file_data', 'file.filename'),
  ...refused(AT_VENDOR, 'file.file_id'),

  ...carried('the call', 'tool_calls[].id', 'tool_calls[].type', 'tool_calls[].function', 'tool_calls[].custom'),
  ...dropped('the place of the call says it', 'tool_calls[].index'),
  ...dropped('programs add it to answers that they send back', 'tool_calls[].provider_specific_fields'),
  ...carried('the call', 'tool_calls[].function.name', 'tool_calls[].function.arguments'),
  ...dropped('programs add it to answers that they send back', 'tool_calls[].function.parsed_arguments'),
  ...carried('the call', 'tool_calls[].custom.name', 'tool_calls[].custom.input'),

  ...carried('the tool', 'tools[].type', 'tools[].function', 'tools[].custom'),
  ...dropped('a hint for the cache', 'tools[].cache_control'),
  ...carried('the tool', 'tools[].function.name', 'tools[].function.description', 'tools[].function.parameters'),
  ...carried('the tool', 'tools[].function.strict'),
  ...dropped('a hint for the cache', 'tools[].function.cache_control'),
  ...carried('the tool', 'tools[].custom.name', 'tools[].custom.description', 'tools[].custom.format'),

  ...carried('the form of the answer', 'response_format.type', 'response_format.json_schema'),
  ...carried('the form of the answer', 'response_format.json_schema.name', 'response_format.json_schema.description'),
  ...carried('the form of the answer', 'response_format.json_schema.schema', 'response_format.json_schema.strict'),
];

const RULE_OF: ReadonlyMap<string, Rule> = new Map(RULES.map((rule) => [rule.member, rule]));

/** Returns the rule of a member; undefined for one that is unknown. */
export function ruleOf(member: string): Rule | undefined {
  return RULE_OF.get(member);
}
