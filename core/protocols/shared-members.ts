import {
  BOOLEAN,
  bounded,
  CACHE_HINT,
  carried,
  dropped,
  free,
  kept,
  LATER,
  LIST,
  numberUpTo,
  refused,
  variant,
} from './request-rows';
import type { MemberRow } from './request-table';
import { VENDOR_SWITCHES } from './vendor-switches';

type Members = Readonly<Record<string, MemberRow>>;

const AT_VENDOR = refused('names something that its vendor keeps');

/** The request members that Messages, Chat and Responses share. */
export const SHARED_MEMBERS: Members = {
  model: { ...free('chooses the price'), ...carried('becomes the name that the upstream has for it') },
  tools: { ...bounded('definitions of tools'), ...carried('are the tools', 'tools'), is: LIST },
  tool_choice: { ...free('says which tools are used'), ...carried('says how tools are used', 'toolChoice') },
  stream: { ...free('says how the answer is sent'), ...carried('says how the answer is sent'), is: BOOLEAN },
  top_p: { ...free('sampling'), ...carried('is the same in all dialects', 'topP') },
  service_tier: { ...variant('tier', 'auto', 'default', 'standard_only'), ...refused('asks for a tier of its vendor') },
  speed: { ...variant('speed', 'standard'), ...refused('asks for a speed of its vendor') },
  inference_geo: { ...variant('geo', 'global'), ...refused('asks for a region of its vendor') },
  previous_response_id: {
    ...kept('previous_response_id', 'an answer at the vendor'),
    keeps: (id) =>
      typeof id === 'string'
        ? { names: [{ kind: 'previous_response_id', id }], makes: [], isOutside: false }
        : undefined,
    ...AT_VENDOR,
  },
  conversation: { ...kept('conversation', 'a conversation at the vendor'), leaves: 'keep', ...AT_VENDOR },
  prompt: { ...kept('prompt', 'a prompt template at the vendor'), leaves: 'fetch', ...AT_VENDOR },
  background: LATER,
  priority: { ...free('reserved for the gateway and not forwarded'), ...dropped('is for the gateway') },
  ...VENDOR_SWITCHES,
};

const CACHE_WRITE: MemberRow = {
  ...bounded('the cache is written at most at its highest price'),
  adds: 'hour',
  ...CACHE_HINT,
};
const PERSON = 'names the person to dialects that have a place for it';

/** The request members that Chat and Responses share, because one vendor designed both protocols. */
export const OPENAI_MEMBERS: Members = {
  ...SHARED_MEMBERS,
  metadata: { ...free('is not read by the model'), ...dropped('is not read by the model') },
  moderation: { ...free('costs nothing at the vendor'), ...refused('asks its vendor to look at the conversation') },
  parallel_tool_calls: { ...free('says how tools are used'), ...carried('says how tools are used', 'parallelTools') },
  prompt_cache_key: {
    ...free('can only lower the cost'),
    ...carried('goes to dialects that have a place for it', 'cacheKey'),
  },
  prompt_cache_options: { ...CACHE_WRITE, leaves: 'keep' },
  prompt_cache_retention: { ...CACHE_WRITE, leaves: 'keep', staysWith: ['in_memory', 'in-memory'] },
  store: {
    ...free('says what the vendor keeps'),
    leaves: 'keep',
    staysWith: [false],
    ...dropped('nothing is kept of a translated answer'),
  },
  stream_options: { ...free('says how the answer is sent'), ...dropped('a translated stream always has its usage') },
  temperature: { ...free('sampling'), ...carried('is the same in all dialects', 'temperature'), is: numberUpTo(2) },
  top_logprobs: { ...free('says what is shown'), ...dropped('the answer has no probabilities') },
  user: { ...free('is not read by the model'), ...carried(PERSON, 'user') },
  safety_identifier: { ...free('is not read by the model'), ...carried(PERSON) },
};
