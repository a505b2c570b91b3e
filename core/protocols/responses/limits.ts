import type { Forms } from '../fitted';
import { COMMON, FAILED_RESULT, UNTOLD_EFFORT, type UnsupportedFeature } from '../limits';

/** The longest name of a person or a cache that the vendor accepts. */
export const LONGEST_NAME = 64;

const NO_PLACE = 'has no place there';
const OF_ASSISTANT = {
  fate: 'refused',
  when: 'in a turn of the assistant',
  why: 'has no place in an answer there',
} as const;
const TOO_LONG = {
  fate: 'dropped',
  when: `longer than ${LONGEST_NAME} characters`,
  why: 'is longer than the vendor takes',
} as const;

/** OpenAI takes a `call_id` of 1 to 64 characters (github.com/AnswerDotAI/fastllm/issues/45, 2026-06: its words). */
export const FORMS: Forms = {
  dialect: 'responses',
  callId: /^[\s\S]{1,64}$/,
  refusesBlank: false,
  holdsClosedOnly: true,
};

/** The features that Responses has no place for. */
export const UNSUPPORTED: readonly UnsupportedFeature[] = [
  ...COMMON,
  { feature: 'choices', fate: 'refused', why: 'asks for several answers, and one is all that comes from there' },
  { feature: 'stop', fate: 'refused', why: NO_PLACE },
  { feature: 'frequencyPenalty', fate: 'refused', why: NO_PLACE },
  { feature: 'presencePenalty', fate: 'refused', why: NO_PLACE },
  {
    feature: 'isBegun',
    fate: 'refused',
    why: 'ends with the beginning of an answer, which Responses would not continue',
  },
  { feature: 'image', ...OF_ASSISTANT },
  { feature: 'document', ...OF_ASSISTANT },
  { feature: 'audio', ...OF_ASSISTANT },
  {
    feature: 'audio',
    fate: 'refused',
    when: 'of another format than wav and mp3',
    why: 'has a format that does not go there',
  },
  FAILED_RESULT,
  UNTOLD_EFFORT,
  { feature: 'topK', fate: 'dropped', why: NO_PLACE },
  { feature: 'seed', fate: 'dropped', why: NO_PLACE },
  { feature: 'cacheKey', ...TOO_LONG },
  { feature: 'user', ...TOO_LONG },
];
