import { type Conversation, type Feature, NotTranslatable } from '../catalog/conversation';

/** What a dialect has no place for when a request is written in it. */
export interface Lack {
  readonly feature: Feature;
  readonly fate: 'dropped' | 'refused';
  /** The end of a sentence that begins with the client's name of it. */
  readonly why: string;
  /** In which requests; absent: in all that have it. */
  readonly when?: string;
  /** Tells such a request. Absent: all that have it, or, where `when` says which, the writer finds out as it writes. */
  isIn?(conversation: Conversation): boolean;
}

/** Some vendors refuse a choice of tools where there are none; one that asks for no tool is left out. */
export const NO_TOOL: Lack = {
  feature: 'toolChoice',
  fate: 'refused',
  when: 'it asks for a tool, and there are none',
  why: 'asks for a tool, and there are none',
  isIn: ({ tools, toolChoice }) => tools.length === 0 && (toolChoice === 'required' || typeof toolChoice === 'object'),
};

/** A body that is deeper is refused. An input that comes as text is not looked into before it is written. */
export const MOST_LEVELS = 256;

export const DEEP_INPUT = {
  feature: 'tool_call',
  fate: 'refused',
  when: `its input has more than ${MOST_LEVELS} levels`,
  why: `has an input of more than ${MOST_LEVELS} levels`,
} as const satisfies Lack;

/** Where results of tools have no place for it. */
export const FAILED_RESULT: Lack = {
  feature: 'tool_result',
  fate: 'dropped',
  when: 'the mark that the tool failed',
  why: 'says in its text what went wrong',
};

/** Where words say how much to reason. */
export const UNTOLD_EFFORT: Lack = {
  feature: 'reasoning',
  fate: 'dropped',
  when: 'the model is not told by a word how much to reason',
  why: 'would be refused there',
};

/** @throws NotTranslatable for the first thing in a request that its new dialect refuses */
export function refuseLacking(conversation: Conversation, lacks: readonly Lack[]): void {
  for (const lack of lacks)
    if (lack.fate === 'refused' && isIn(conversation, lack)) throw new NotTranslatable(lack.feature, lack.why);
}

function isIn(conversation: Conversation, { feature, when, isIn: tells }: Lack): boolean {
  return tells?.(conversation) ?? (when === undefined && has(conversation, feature));
}

function has(conversation: Conversation, feature: Feature): boolean {
  if (feature === 'choices') return conversation.choices > 1;
  const value = feature in conversation ? conversation[feature as keyof Conversation] : undefined;
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}
