import type { Forms } from '../fitted';
import { COMMON, FAILED_RESULT, NO_EFFORT_WORD, NO_TOOL, type UnsupportedFeature } from '../limits';

/** The most stop sequences that vendors accept. */
const MAX_STOPS = 4;

const OMITTED = 'is left out, because upstreams that speak Chat may refuse a member that they do not know';
const OF_ASSISTANT = {
  action: 'refused',
  when: 'in a turn of the assistant',
  why: 'cannot stand in a message of the assistant at this upstream',
} as const;

/** The formats that Chat vendors accept. OpenAI accepts ids of up to 40 characters (github.com/agno-agi/agno/issues/5382, 2025-11: quotes the vendor). */
export const CHAT_FORMS: Forms = {
  dialect: 'chat',
  callId: /^[\s\S]{1,40}$/,
  refusesBlank: false,
  holdsClosedOnly: true,
};

/** The features of conversations that Chat cannot express. */
export const CHAT_UNSUPPORTED: readonly UnsupportedFeature[] = [
  ...COMMON,
  {
    feature: 'stop',
    action: 'refused',
    when: `more than ${MAX_STOPS}`,
    why: `may have ${MAX_STOPS} texts at most at this upstream`,
    isIn: ({ stop }) => stop.length > MAX_STOPS,
  },
  NO_TOOL,
  { feature: 'isBegun', action: 'refused', why: 'ends with the beginning of an answer, which Chat would not continue' },
  { feature: 'image', ...OF_ASSISTANT },
  { feature: 'document', ...OF_ASSISTANT },
  { feature: 'audio', ...OF_ASSISTANT },
  {
    feature: 'document',
    action: 'refused',
    when: 'at an address',
    why: 'must stand in the request itself: this upstream fetches no documents',
  },
  FAILED_RESULT,
  NO_EFFORT_WORD,
  { feature: 'topK', action: 'dropped', why: OMITTED },
  { feature: 'verbosity', action: 'dropped', why: OMITTED },
  { feature: 'cacheKey', action: 'dropped', why: OMITTED },
  { feature: 'user', action: 'dropped', why: OMITTED },
];
