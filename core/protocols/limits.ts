import { type Conversation, type Feature, NotTranslatable } from '../catalog/conversation';
import type { TranslatedCall } from '../catalog/upstream';
import { MAX_JSON_DEPTH } from '../http/json-scanner';

/** A feature that a dialect has no place for when a request is written in it. */
export interface UnsupportedFeature {
  readonly feature: Feature;
  readonly action: 'dropped' | 'refused';
  /** The reason: the end of a sentence that begins with the client's name of the feature. */
  readonly why: string;
  /** Which requests it concerns; absent: all that have the feature. */
  readonly when?: string;
  /** Returns whether it concerns a request. Absent: it concerns all, or, with `when`, the writer finds out while writing. */
  isIn?(conversation: Conversation, model: string): boolean;
}

/** Refuses a tool choice without tools, because some vendors do. A choice of no tool is dropped. */
export const NO_TOOL: UnsupportedFeature = {
  feature: 'toolChoice',
  action: 'refused',
  when: 'it asks for a tool, and there are none',
  why: 'asks for a tool, and there are none',
  isIn: ({ tools, toolChoice }) => tools.length === 0 && (toolChoice === 'required' || typeof toolChoice === 'object'),
};

const NO_INPUT = `is no JSON object of at most ${MAX_JSON_DEPTH} levels with each name once`;

/** Refuses an input of a tool that cannot stand as an object in other JSON. It comes as text, and is read only when it is written. */
export const BROKEN_INPUT = {
  feature: 'tool_call',
  action: 'refused',
  when: `its input ${NO_INPUT}`,
  why: `has an input that ${NO_INPUT}`,
} as const satisfies UnsupportedFeature;

/** Refuses a result without its call, as all vendors do. */
export const ORPHAN = {
  feature: 'tool_result',
  action: 'refused',
  when: 'its call is not in the conversation',
  why: 'answers what is no call of this conversation',
} as const satisfies UnsupportedFeature;

/** Refuses two tools of one name, as all vendors do. A tool that is repeated is written once. */
export const TWO_TOOLS = {
  feature: 'tools',
  action: 'refused',
  when: 'two tools have one name',
  why: 'has two tools of one name',
} as const satisfies UnsupportedFeature;

/** Refuses a conversation in which nothing is said. */
export const SILENT = {
  feature: 'text',
  action: 'refused',
  when: 'all of the conversation is empty',
  why: 'is empty or white space alone, so that nothing is asked',
} as const satisfies UnsupportedFeature;

/** Anthropic refuses such texts (github.com/BerriAI/litellm/issues/3286, 2024-04: its words). */
export const BLANK_STOP: UnsupportedFeature = {
  feature: 'stop',
  action: 'refused',
  when: 'a text of white space alone',
  why: 'has a text of white space alone, which this upstream refuses',
  isIn: ({ stop }) => stop.some((text) => text.trim() === ''),
};

/** The refusals of every dialect. */
export const COMMON: readonly UnsupportedFeature[] = [ORPHAN, TWO_TOOLS, SILENT];

/** Drops the mark that a tool failed, for dialects whose tool results have no place for it. */
export const FAILED_RESULT: UnsupportedFeature = {
  feature: 'tool_result',
  action: 'dropped',
  when: 'the mark that the tool failed',
  why: 'says in its text what went wrong',
};

/** Drops the reasoning setting of a model that takes no word for how much to reason. */
export const NO_EFFORT_WORD: UnsupportedFeature = {
  feature: 'reasoning',
  action: 'dropped',
  when: 'the model takes no word for how much to reason',
  why: 'would be refused there',
};

/** Refuses a request with a feature that its new dialect refuses. @throws NotTranslatable for the first one */
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
