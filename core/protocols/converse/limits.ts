import type { Forms } from '../fitted';
import { BROKEN_INPUT, COMMON, NO_TOOL, type UnsupportedFeature } from '../limits';
import { NO_SAMPLING, ONE_SAMPLING } from '../models';

const NO_PLACE = 'has no place there';
const BY_ADDRESS = {
  action: 'refused',
  when: 'at an address',
  why: 'is fetched by no model there: send its data',
} as const;
const OTHER_TYPE = 'has a type that is not taken there';

/**
 * The formats that Amazon accepts. Its ids of tool calls: docs.aws.amazon.com/bedrock, ToolUseBlock, 2026-11. Amazon refuses texts that are
 * only white space (github.com/NousResearch/hermes-agent/pull/41985, 2026-06: quotes the vendor).
 */
export const CONVERSE_FORMS: Forms = {
  dialect: 'converse',
  callId: /^[a-zA-Z0-9_.:-]{1,64}$/,
  refusesBlank: true,
  system: 'user',
};

/** The features that the dialect of Converse cannot express. */
export const CONVERSE_UNSUPPORTED: readonly UnsupportedFeature[] = [
  ...COMMON,
  NO_SAMPLING,
  ONE_SAMPLING,
  { feature: 'choices', action: 'refused', why: 'is at most 1 there' },
  { feature: 'topK', action: 'dropped', why: NO_PLACE },
  { feature: 'frequencyPenalty', action: 'refused', why: NO_PLACE },
  { feature: 'presencePenalty', action: 'refused', why: NO_PLACE },
  {
    feature: 'temperature',
    action: 'refused',
    when: 'above 1',
    why: 'is at most 1 there',
    isIn: ({ temperature = 0 }) => temperature > 1,
  },
  {
    feature: 'parallelTools',
    action: 'refused',
    when: 'one at a time, and there are tools',
    why: 'has no place there: the model may call several tools at once',
    isIn: ({ parallelTools, tools }) => parallelTools === false && tools.length > 0,
  },
  {
    feature: 'toolChoice',
    action: 'refused',
    when: '`none`, and there are tools',
    why: 'is never `none` there: leave the tools out',
    isIn: ({ toolChoice, tools }) => toolChoice === 'none' && tools.length > 0,
  },
  NO_TOOL,
  {
    feature: 'isBegun',
    action: 'refused',
    why: 'ends with the beginning of an answer, which not all models there take',
  },
  {
    feature: 'outputFormat',
    action: 'refused',
    when: 'JSON without a schema',
    why: 'is JSON without a schema, which has no place there',
    isIn: ({ outputFormat }) => outputFormat?.kind === 'json',
  },
  { feature: 'audio', action: 'refused', why: NO_PLACE },
  { feature: 'image', ...BY_ADDRESS },
  { feature: 'document', ...BY_ADDRESS },
  { feature: 'image', action: 'refused', when: 'of another type than JPEG, PNG, GIF and WebP', why: OTHER_TYPE },
  {
    feature: 'document',
    action: 'refused',
    when: 'of another type than PDF, plain text, Markdown, HTML and CSV',
    why: OTHER_TYPE,
  },
  { feature: 'image', action: 'refused', when: 'in a turn of the assistant', why: 'has no place in an answer there' },
  {
    feature: 'document',
    action: 'refused',
    when: 'in a turn of the assistant',
    why: 'has no place in an answer there',
  },
  { feature: 'image', action: 'dropped', when: 'how closely it is looked at', why: 'is always looked at alike there' },
  {
    feature: 'outputFormat',
    action: 'dropped',
    when: '`strict` of a schema',
    why: 'is always held to its schema there',
  },
  BROKEN_INPUT,
  { feature: 'seed', action: 'dropped', why: NO_PLACE },
  { feature: 'reasoning', action: 'dropped', why: 'is set in another way for each vendor there' },
  { feature: 'verbosity', action: 'dropped', why: NO_PLACE },
  { feature: 'cacheKey', action: 'dropped', why: NO_PLACE },
  { feature: 'user', action: 'dropped', why: NO_PLACE },
];
