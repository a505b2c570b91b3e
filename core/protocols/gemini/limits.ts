import type { Forms } from '../fitted';
import { BROKEN_INPUT, COMMON, NO_TOOL, type UnsupportedFeature } from '../limits';

const MAX_STOPS = 5;

const NO_PLACE = 'has no place there';
const NO_TYPE = {
  action: 'refused',
  when: 'at an address from which its type cannot be read',
  why: 'has an address without a file type, which this vendor requires',
} as const;

const OTHER_TYPE = {
  action: 'refused',
  when: 'of a type that is none of it',
  why: 'has a type that would be read as something else there',
} as const;

/**
 * The formats that Gemini accepts. Google documents no limit for an id (ai.google.dev, FunctionCall, 2026-11). An empty id is replaced,
 * because it identifies nothing.
 */
export const GEMINI_FORMS: Forms = { dialect: 'gemini', callId: /^[\s\S]{1,64}$/, refusesBlank: false, system: 'user' };

/** The features that the dialect of Gemini cannot express. */
export const GEMINI_UNSUPPORTED: readonly UnsupportedFeature[] = [
  ...COMMON,
  {
    feature: 'stop',
    action: 'refused',
    when: `more than ${MAX_STOPS}`,
    why: `has more than the ${MAX_STOPS} words that go there`,
    isIn: ({ stop }) => stop.length > MAX_STOPS,
  },
  {
    feature: 'parallelTools',
    action: 'refused',
    when: 'one at a time, and there are tools',
    why: 'has no place there: the model may call several tools at once',
    isIn: ({ parallelTools, tools }) => parallelTools === false && tools.length > 0,
  },
  NO_TOOL,
  { feature: 'isBegun', action: 'refused', why: 'ends with the beginning of an answer, which has no place there' },
  {
    feature: 'isBegun',
    action: 'refused',
    when: 'it is absent, and the last turn is one of the assistant',
    why: 'ends with an answer, and the last turn must be one of the user there',
  },
  { feature: 'audio', action: 'refused', when: 'in a turn of the assistant', why: 'has no place in an answer there' },
  { feature: 'image', ...NO_TYPE },
  { feature: 'document', ...NO_TYPE },
  { feature: 'image', ...OTHER_TYPE },
  { feature: 'document', ...OTHER_TYPE },
  BROKEN_INPUT,
  {
    feature: 'outputFormat',
    action: 'dropped',
    when: 'the name, the description and `strict` of a schema',
    why: 'has the schema alone there, and the answer is always held to it',
  },
  { feature: 'image', action: 'dropped', when: 'how closely it is looked at', why: 'is always looked at alike there' },
  { feature: 'document', action: 'dropped', when: 'its name', why: 'has no name there' },
  {
    feature: 'reasoning',
    action: 'dropped',
    when: 'the request does not set how much to reason',
    why: 'would be refused there',
  },
  { feature: 'verbosity', action: 'dropped', why: NO_PLACE },
  { feature: 'cacheKey', action: 'dropped', why: NO_PLACE },
  { feature: 'user', action: 'dropped', why: NO_PLACE },
];
