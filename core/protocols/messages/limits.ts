import type { Forms } from '../fitted';
import { BLANK_STOP, BROKEN_INPUT, COMMON, NO_TOOL, type UnsupportedFeature } from '../limits';
import { NO_SAMPLING, ONE_SAMPLING } from '../models';

/** The longest end-user id that the vendor accepts, in characters. */
export const MAX_USER_LENGTH = 256;

/**
 * The formats that Messages vendors accept. Anthropic refuses ids with characters outside the set in `callId`, and texts of only white
 * space (github.com/anthropics/claude-code/issues/23440, 2026-02: quotes the vendor). Amazon accepts ids of up to 64 characters.
 */
export const MESSAGES_FORMS: Forms = {
  dialect: 'messages',
  callId: /^[a-zA-Z0-9_-]{1,64}$/,
  refusesBlank: true,
  system: 'by model',
};

/** The features of conversations that Messages cannot express. */
export const MESSAGES_UNSUPPORTED: readonly UnsupportedFeature[] = [
  ...COMMON,
  NO_SAMPLING,
  ONE_SAMPLING,
  BLANK_STOP,
  { feature: 'choices', action: 'refused', why: 'is above 1, and Messages gives one answer' },
  {
    feature: 'temperature',
    action: 'refused',
    when: 'above 1',
    why: 'is above 1, the most that Messages takes',
    isIn: ({ temperature = 0 }) => temperature > 1,
  },
  {
    feature: 'outputFormat',
    action: 'refused',
    when: 'JSON without a schema',
    why: 'asks for JSON without a schema, which Messages does not have',
    isIn: ({ outputFormat }) => outputFormat?.kind === 'json',
  },
  { feature: 'frequencyPenalty', action: 'refused', why: 'has no place in Messages' },
  { feature: 'presencePenalty', action: 'refused', why: 'has no place in Messages' },
  NO_TOOL,
  {
    feature: 'isBegun',
    action: 'refused',
    when: 'it is absent, and the last turn is one of the assistant',
    why: 'ends with an answer, and Messages would continue it',
  },
  { feature: 'audio', action: 'refused', why: 'has no place in Messages' },
  {
    feature: 'image',
    action: 'refused',
    when: 'of another type than JPEG, PNG, GIF and WebP',
    why: 'has a type that Messages does not take',
  },
  {
    feature: 'document',
    action: 'refused',
    when: 'of another type than PDF and plain text',
    why: 'has a type that Messages does not take',
  },
  BROKEN_INPUT,
  {
    feature: 'outputFormat',
    action: 'dropped',
    when: 'the name, the description and `strict` of a schema',
    why: 'has the schema alone there, and the answer is always held to it',
  },
  { feature: 'image', action: 'dropped', when: 'how closely it is looked at', why: 'is always looked at alike there' },
  {
    feature: 'reasoning',
    action: 'dropped',
    when: 'the request does not set how much to reason',
    why: 'would be refused there',
  },
  {
    feature: 'reasoning',
    action: 'dropped',
    when: 'the request sets a number of reasoning tokens, and the sampling or the choice of tools forbids thinking',
    why: 'would be refused there',
  },
  { feature: 'seed', action: 'dropped', why: 'has no place in Messages' },
  { feature: 'verbosity', action: 'dropped', why: 'has no place in Messages' },
  {
    feature: 'user',
    action: 'dropped',
    when: `longer than ${MAX_USER_LENGTH} characters`,
    why: 'is longer than the vendor takes',
  },
];
