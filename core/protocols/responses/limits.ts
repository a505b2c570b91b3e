import type { Forms } from '../fitted';
import { COMMON, FAILED_RESULT, NO_EFFORT_WORD, type UnsupportedFeature } from '../limits';

/** The longest end-user id or cache name that the vendor accepts, in characters. */
export const MAX_TOOL_NAME_LENGTH = 64;

const NO_PLACE = 'has no place there';
const OF_ASSISTANT = {
  action: 'refused',
  when: 'in a turn of the assistant',
  why: 'has no place in an answer there',
} as const;
const TOO_LONG = {
  action: 'dropped',
  when: `longer than ${MAX_TOOL_NAME_LENGTH} characters`,
  why: 'is longer than the vendor takes',
} as const;

/** OpenAI accepts a `call_id` of 1 to 64 characters (github.com/AnswerDotAI/fastllm/issues/45, 2026-06: quotes the vendor). */
export const RESPONSES_FORMS: Forms = {
  dialect: 'responses',
  callId: /^[\s\S]{1,64}$/,
  refusesBlank: false,
  holdsClosedOnly: true,
};

/** The features of conversations that Responses cannot express. */
export const RESPONSES_UNSUPPORTED: readonly UnsupportedFeature[] = [
  ...COMMON,
  { feature: 'choices', action: 'refused', why: 'asks for several answers, and one is all that comes from there' },
  { feature: 'stop', action: 'refused', why: NO_PLACE },
  { feature: 'frequencyPenalty', action: 'refused', why: NO_PLACE },
  { feature: 'presencePenalty', action: 'refused', why: NO_PLACE },
  {
    feature: 'isBegun',
    action: 'refused',
    why: 'ends with the beginning of an answer, which Responses would not continue',
  },
  { feature: 'image', ...OF_ASSISTANT },
  { feature: 'document', ...OF_ASSISTANT },
  { feature: 'audio', ...OF_ASSISTANT },
  {
    feature: 'audio',
    action: 'refused',
    when: 'of another format than wav and mp3',
    why: 'has a format that does not go there',
  },
  FAILED_RESULT,
  NO_EFFORT_WORD,
  { feature: 'topK', action: 'dropped', why: NO_PLACE },
  { feature: 'seed', action: 'dropped', why: NO_PLACE },
  { feature: 'cacheKey', ...TOO_LONG },
  { feature: 'user', ...TOO_LONG },
];
