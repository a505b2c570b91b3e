import type { Forms } from '../fitted';
import { COMMON, FAILED_RESULT, NO_TOOL, UNTOLD_EFFORT, type UnsupportedFeature } from '../limits';

/** The most stop sequences that vendors take. */
const MOST_STOPS = 4;

const NOT_SAID = 'is left out, because upstreams that speak Chat may refuse a member that they do not know';
const OF_ASSISTANT = {
  fate: 'refused',
  when: 'in a turn of the assistant',
  why: 'cannot stand in a message of the assistant at this upstream',
} as const;

/** OpenAI takes ids of 40 characters at most (github.com/agno-agi/agno/issues/5382, 2025-11: its words). */
export const FORMS: Forms = { dialect: 'chat', callId: /^[\s\S]{1,40}$/, refusesBlank: false, holdsClosedOnly: true };

/** The features that Chat has no place for. */
export const UNSUPPORTED: readonly UnsupportedFeature[] = [
  ...COMMON,
  {
    feature: 'stop',
    fate: 'refused',
    when: `more than ${MOST_STOPS}`,
    why: `may have ${MOST_STOPS} texts at most at this upstream`,
    isIn: ({ stop }) => stop.length > MOST_STOPS,
  },
  NO_TOOL,
  { feature: 'isBegun', fate: 'refused', why: 'ends with the beginning of an answer, which Chat would not continue' },
  { feature: 'image', ...OF_ASSISTANT },
  { feature: 'document', ...OF_ASSISTANT },
  { feature: 'audio', ...OF_ASSISTANT },
  {
    feature: 'document',
    fate: 'refused',
    when: 'at an address',
    why: 'must stand in the request itself: this upstream fetches no documents',
  },
  FAILED_RESULT,
  UNTOLD_EFFORT,
  { feature: 'topK', fate: 'dropped', why: NOT_SAID },
  { feature: 'verbosity', fate: 'dropped', why: NOT_SAID },
  { feature: 'cacheKey', fate: 'dropped', why: NOT_SAID },
  { feature: 'user', fate: 'dropped', why: NOT_SAID },
];
