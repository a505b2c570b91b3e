import { isDeepStrictEqual } from 'node:util';
import { NotTranslatable } from '../../catalog/conversation';
import type { JsonObject } from '../../json-values';

/** What becomes of one member of a request when it is carried to another dialect. */
export interface TranslationRule {
  /** A member of the request, or of a message, tool or content block: `tools.strict`, `image.source`. */
  readonly member: string;
  readonly fate: 'carried' | 'dropped' | 'refused';
  readonly why: string;
  /** The values of a refused member that mean the same as its absence: they are dropped. */
  readonly unless?: readonly unknown[];
}

const carried = (member: string, why: string): TranslationRule => ({ member, fate: 'carried', why });
const dropped = (member: string, why: string): TranslationRule => ({ member, fate: 'dropped', why });
const refused = (member: string, why: string, unless: readonly unknown[] = []): TranslationRule => ({
  member,
  fate: 'refused',
  why,
  ...(unless.length > 0 && { unless }),
});

const CACHE = 'is a hint for the cache of its vendor';

/** What becomes of each member of a Messages request. A member without a rule is refused; `null` always means that a member is absent. */
export const RULES: readonly TranslationRule[] = [
  carried('model', 'becomes the name that the upstream has for it'),
  carried('messages', 'is the conversation'),
  carried('system', 'is the instructions'),
  carried('max_tokens', 'is the limit of the answer'),
  carried('stop_sequences', 'are the stop sequences'),
  carried('stream', 'says how the answer is sent'),
  carried('temperature', 'is the same in all dialects'),
  carried('top_p', 'is the same in all dialects'),
  carried('top_k', 'goes to dialects that have it'),
  carried('tools', 'are the tools'),
  carried('tool_choice', 'is the choice of tools, and whether several may be called at once'),
  carried('thinking', 'goes to models that are told how much to reason'),
  carried('output_config', 'has the effort of reasoning and the schema of the answer'),
  carried('output_format', 'is the schema of the answer'),
  carried('metadata', 'names the person behind the call to dialects that have a place for it'),
  dropped('cache_control', CACHE),
  dropped('context_management', 'lets its vendor shorten the conversation'),
  dropped('diagnostics', 'compares prompts at its vendor'),
  dropped('fallback_credit_token', 'is good at its vendor alone'),
  dropped('priority', 'is for the gateway'),
  dropped('betas', 'are those of its vendor'),
  refused('service_tier', 'asks for a tier of its vendor', ['auto', 'default', 'standard_only']),
  refused('speed', 'asks for a speed of its vendor', ['standard']),
  refused('inference_geo', 'asks for a region of its vendor', ['global']),
  refused('fallbacks', 'asks for other models of its vendor', [[]]),
  refused('billing_policy', 'is good at its vendor alone'),
  refused('web_search_options', 'asks for searches at its vendor'),
  refused('compaction', 'asks its vendor for a summary'),
  refused('mcp_servers', 'are asked by its vendor', [[]]),
  refused('thread', 'names a conversation at its vendor'),
  refused('container', 'names files at its vendor'),
  refused('previous_response_id', 'names an answer at its vendor'),
  refused('conversation', 'names a conversation at its vendor'),
  refused('prompt', 'names a prompt at its vendor'),
  refused('background', 'asks for an answer after the call', [false]),

  carried('messages.role', 'is the side that speaks, or `system` for instructions inside the conversation'),
  carried('messages.content', 'is what it says'),
  carried('messages.output_config', 'has the effort of reasoning from there on'),
  carried('messages.clear_at', 'leaves instructions out of later turns'),
  carried('output_config.effort', 'is the effort of reasoning'),
  carried('output_config.format', 'is the schema of the answer'),
  refused('output_config.task_budget', 'is counted by its vendor'),
  carried('thinking.type', 'says whether the model reasons'),
  carried('thinking.budget_tokens', 'is how much it reasons'),
  carried('thinking.display', 'says whether its reasoning is shown'),
  carried('metadata.user_id', 'names the person behind the call'),
  carried('tool_choice.type', 'is the choice of tools'),
  carried('tool_choice.name', 'is the tool that is called'),
  carried('tool_choice.disable_parallel_tool_use', 'says whether several may be called at once'),

  carried('tools.type', 'is `custom` for tools that run at the client'),
  carried('tools.name', 'is its name'),
  carried('tools.description', 'describes it'),
  carried('tools.input_schema', 'is the schema of its input'),
  carried('tools.strict', 'holds its input to the schema'),
  dropped('tools.cache_control', CACHE),
  dropped('tools.eager_input_streaming', 'is how its vendor streams'),
  refused('tools.defer_loading', 'lets its vendor search for tools', [false]),
  refused('tools.allowed_callers', 'lets code at its vendor call tools', [[], ['direct']]),
  refused('tools.input_examples', 'has no place in other dialects', [[]]),

  carried('text.text', 'is the text'),
  dropped('text.citations', 'are those of earlier turns'),
  dropped('text.cache_control', CACHE),
  carried('image.source', 'is the image: its bytes or its address'),
  dropped('image.cache_control', CACHE),
  refused('image.transformations', 'asks its vendor to refuse large images', [{}, { oversized_image: 'downsize' }]),
  carried('document.source', 'is the document: its bytes, its address or its text'),
  carried('document.title', 'is its name'),
  dropped('document.cache_control', CACHE),
  refused('document.context', 'has no place in other dialects'),
  refused('document.citations', 'asks its vendor for citations', [{}, { enabled: false }]),
  carried('tool_use.id', 'is the id of the call'),
  carried('tool_use.name', 'is the tool that was called'),
  carried('tool_use.input', 'is what it was called with'),
  dropped('tool_use.caller', 'says who called it'),
  dropped('tool_use.cache_control', CACHE),
  refused('tool_use.toolset_name', 'names a toolset of its vendor'),
  carried('tool_result.tool_use_id', 'is the id of the call'),
  carried('tool_result.content', 'is what the tool gave back'),
  carried('tool_result.is_error', 'says that it failed'),
  dropped('tool_result.cache_control', CACHE),
  refused('tool_result.toolset_name', 'names a toolset of its vendor'),
  carried('thinking_block.thinking', 'goes back to where it came from'),
  carried('thinking_block.signature', 'goes back to where it came from'),
  carried('redacted_thinking.data', 'goes back to where it came from'),
];

const BY_MEMBER: ReadonlyMap<string, TranslationRule> = new Map(RULES.map((rule) => [rule.member, rule]));

/**
 * Returns the members of an object that are carried.
 * @param kind what stands before the members in the table, empty for the request's own
 * @param place where the object stands in the request, for errors
 * @param isEcho whether the client repeats an earlier answer: its unknown members are dropped
 * @throws NotTranslatable for a member that is refused, or that the table does not have
 */
export function carriedOf(object: JsonObject, kind: string, place: string, isEcho = false): JsonObject {
  const isCarried = ([name, value]: [string, unknown]) => {
    if (value === null || value === undefined) return false;
    const rule = BY_MEMBER.get(join(kind, name));
    if (rule === undefined && !isEcho) throw new NotTranslatable(join(place, name), 'is not known to the gateway');
    if (rule?.fate === 'refused' && !saysNothing(rule, value)) throw new NotTranslatable(join(place, name), rule.why);
    return rule?.fate === 'carried';
  };
  return Object.fromEntries(Object.entries(object).filter(isCarried));
}

function saysNothing({ unless = [] }: TranslationRule, value: unknown): boolean {
  return unless.some((each) => isDeepStrictEqual(each, value));
}

function join(place: string, name: string): string {
  return place === '' ? name : `${place}.${name}`;
}
