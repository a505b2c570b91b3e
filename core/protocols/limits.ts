import { type Conversation, type Feature, NotTranslatable } from '../catalog/conversation';
import type { TranslatedCall } from '../catalog/upstream';
import { MAX_JSON_DEPTH } from '../http/json-scanner';

/** A feature of a request that the upstream's dialect cannot express. */
export interface UnsupportedFeature {
  readonly feature: Feature;
  readonly action: 'dropped' | 'refused';
  /** Why the feature fails, as the end of a sentence. The sentence's subject is the client's name of the feature. */
  readonly why: string;
  /** Which requests with the feature are affected, in words; absent if all of them are. */
  readonly when?: string;
  /**
   * Returns whether a request is affected. If `when` is set but this function is absent, the dialect's writer decides while it writes. If
   * both are absent, every request with the feature is affected.
   */
  isIn?(conversation: Conversation, model: string): boolean;
}

/** Refuses a tool choice without tools, because some vendors do. The choice `none` is dropped. */
export const NO_TOOL: UnsupportedFeature = {
  feature: 'toolChoice',
  action: 'refused',
  when: 'it asks for a tool, and there are none',
  why: 'asks for a tool, and there are none',
  isIn: ({ tools, toolChoice }) => tools.length === 0 && (toolChoice === 'required' || typeof toolChoice === 'object'),
};

const NO_INPUT = `is no JSON object of at most ${MAX_JSON_DEPTH} levels with each name once`;

/** Refuses a tool input that is no valid JSON object. The input arrives as text, and the gateway parses it only when it writes the request. */
export const BROKEN_INPUT = {
  feature: 'tool_call',
  action: 'refused',
  when: `its input ${NO_INPUT}`,
  why: `has an input that ${NO_INPUT}`,
} as const satisfies UnsupportedFeature;

/** Refuses a tool result without its call, as all vendors do. */
export const ORPHAN = {
  feature: 'tool_result',
  action: 'refused',
  when: 'its call is not in the conversation',
  why: 'answers what is no call of this conversation',
} as const satisfies UnsupportedFeature;

/** Refuses two different tools with one name, as all vendors do. A duplicate of a tool is omitted. */
export const TWO_TOOLS = {
  feature: 'tools',
  action: 'refused',
  when: 'two tools have one name',
  why: 'has two tools of one name',
} as const satisfies UnsupportedFeature;

/** Refuses a conversation without any content. */
export const SILENT = {
  feature: 'text',
  action: 'refused',
  when: 'all of the conversation is empty',
  why: 'is empty or white space alone, so that nothing is asked',
} as const satisfies UnsupportedFeature;

/** Anthropic refuses stop texts that are only white space (github.com/BerriAI/litellm/issues/3286, 2024-04: quotes the vendor). */
export const BLANK_STOP: UnsupportedFeature = {
  feature: 'stop',
  action: 'refused',
  when: 'a text of white space alone',
  why: 'has a text of white space alone, which this upstream refuses',
  isIn: ({ stop }) => stop.some((text) => text.trim() === ''),
};

/** The unsupported request features that the gateway refuses for every dialect. */
export const COMMON: readonly UnsupportedFeature[] = [ORPHAN, TWO_TOOLS, SILENT];

/** Drops the flag that a tool failed, for dialects whose tool results cannot express it. */
export const FAILED_RESULT: UnsupportedFeature = {
  feature: 'tool_result',
  action: 'dropped',
  when: 'the mark that the tool failed',
  why: 'says in its text what went wrong',
};

/** Drops the reasoning setting for a model that accepts no level of effort. */
export const NO_EFFORT_WORD: UnsupportedFeature = {
  feature: 'reasoning',
  action: 'dropped',
  when: 'the model takes no word for how much to reason',
  why: 'would be refused there',
};

/** Refuses a request with a feature that the upstream's dialect refuses. @throws NotTranslatable for the first such feature */
export function rejectUnsupported({ conversation, model }: TranslatedCall, lacks: readonly UnsupportedFeature[]): void {
  for (const { feature, action, why, when, isIn } of lacks) {
    const isConcerned = isIn?.(conversation, model) ?? (when === undefined && has(conversation, feature));
    if (action === 'refused' && isConcerned) throw new NotTranslatable(feature, why);
  }
}

function has(conversation: Conversation, feature: Feature): boolean {
  if (feature === 'choices') return conversation.choices > 1;
  const value = feature in conversation ? conversation[feature as keyof Conversation] : undefined;
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}
