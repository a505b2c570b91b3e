import { type Conversation, type Feature, NotTranslatable } from '../catalog/conversation';

/** A feature that a dialect has no place for when a request is written in it. */
export interface UnsupportedFeature {
  readonly feature: Feature;
  readonly fate: 'dropped' | 'refused';
  /** The reason: the end of a sentence that begins with the client's name of the feature. */
  readonly why: string;
  /** Which requests it concerns; absent: all that have the feature. */
  readonly when?: string;
  /** Returns whether it concerns a request. Absent: it concerns all, or, with `when`, the writer finds out while writing. */
  isIn?(conversation: Conversation): boolean;
}

/** Refuses a tool choice without tools, because some vendors do. A choice of no tool is dropped. */
export const NO_TOOL: UnsupportedFeature = {
  feature: 'toolChoice',
  fate: 'refused',
  when: 'it asks for a tool, and there are none',
  why: 'asks for a tool, and there are none',
  isIn: ({ tools, toolChoice }) => tools.length === 0 && (toolChoice === 'required' || typeof toolChoice === 'object'),
};

/** The most levels of nesting. The gateway refuses a deeper body, but parses an input that comes as text only when it writes it. */
export const MOST_LEVELS = 256;

export const DEEP_INPUT = {
  feature: 'tool_call',
  fate: 'refused',
  when: `its input has more than ${MOST_LEVELS} levels`,
  why: `has an input of more than ${MOST_LEVELS} levels`,
} as const satisfies UnsupportedFeature;

/** Drops the mark that a tool failed, for dialects whose tool results have no place for it. */
export const FAILED_RESULT: UnsupportedFeature = {
  feature: 'tool_result',
  fate: 'dropped',
  when: 'the mark that the tool failed',
  why: 'says in its text what went wrong',
};

/** Drops the reasoning setting of a model that takes no word for how much to reason. */
export const UNTOLD_EFFORT: UnsupportedFeature = {
  feature: 'reasoning',
  fate: 'dropped',
  when: 'the model takes no word for how much to reason',
  why: 'would be refused there',
};

/** Refuses a request with a feature that its new dialect refuses. @throws NotTranslatable for the first one */
export function rejectUnsupported(conversation: Conversation, lacks: readonly UnsupportedFeature[]): void {
  for (const lack of lacks)
    if (lack.fate === 'refused' && isIn(conversation, lack)) throw new NotTranslatable(lack.feature, lack.why);
}

function isIn(conversation: Conversation, { feature, when, isIn: tells }: UnsupportedFeature): boolean {
  return tells?.(conversation) ?? (when === undefined && has(conversation, feature));
}

function has(conversation: Conversation, feature: Feature): boolean {
  if (feature === 'choices') return conversation.choices > 1;
  const value = feature in conversation ? conversation[feature as keyof Conversation] : undefined;
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}
