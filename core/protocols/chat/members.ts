import type { TokenMeter } from '../../catalog/usage';
import {
  BACKGROUND,
  bounded,
  type Dialect,
  FILE,
  free,
  kept,
  type Needs,
  pricedExcept,
  RESPONSE_ID,
  SPEECH,
  TEXT,
} from '../dialect';

/** The members and types of Chat requests: those of the package openai, and those of the same vendor's newer protocol. */
export const CHAT_DIALECT: Dialect = {
  members: {
    model: free('chooses the price'),
    messages: bounded('the conversation'),
    tools: bounded('definitions of tools'),
    functions: bounded('definitions of tools'),
    max_tokens: bounded('limits the answer'),
    max_completion_tokens: bounded('limits the answer; the larger limit counts'),
    n: bounded('multiplies the answers'),
    response_format: bounded('a schema is read'),
    prediction: bounded('what the answer does not use costs as output'),
    prompt_cache_options: bounded('the cache is written at most at its highest price'),
    prompt_cache_retention: bounded('the cache is written at most at its highest price'),
    system: bounded('some upstreams read it'),
    frequency_penalty: free('sampling'),
    function_call: free('says which tools are used'),
    logit_bias: free('sampling'),
    logprobs: free('says what is shown'),
    metadata: free('is not read by the model'),
    moderation: free('costs nothing at the vendor'),
    parallel_tool_calls: free('says how tools are used'),
    presence_penalty: free('sampling'),
    prompt_cache_key: free('can only lower the cost'),
    reasoning_effort: free('counts towards the limit'),
    safety_identifier: free('is not read by the model'),
    seed: free('sampling'),
    stop: free('can only shorten the answer'),
    store: free('says what the vendor keeps'),
    stream: free('says how the answer is sent'),
    stream_options: free('says how the answer is sent'),
    temperature: free('sampling'),
    tool_choice: free('says which tools are used'),
    top_logprobs: free('says what is shown'),
    top_p: free('sampling'),
    top_k: free('sampling, at upstreams that have it'),
    user: free('is not read by the model'),
    verbosity: free('counts towards the limit'),
    priority: free('reserved for the gateway and not forwarded'),
    service_tier: pricedExcept(['auto', 'default', 'standard_only'], 'a tier with a price of its own', 'tier'),
    speed: pricedExcept(['standard'], 'a speed with a price of its own', 'speed'),
    inference_geo: pricedExcept(['global'], 'a region with a price of its own', 'geo'),
    web_search_options: { class: 'priced', why: 'one search for each call', meter: 'webSearch', furtherPasses: 1 },
    audio: {
      ...pricedExcept([], 'spoken answers have prices of their own'),
      needs: () => ({ meters: ['audioOutput'] }),
    },
    modalities: {
      class: 'priced',
      why: 'spoken answers have prices of their own',
      isFree: (value) => Array.isArray(value) && value.every((each) => each === 'text'),
      freeValues: '["text"]',
      needs: spokenOrDrawn,
    },
    previous_response_id: RESPONSE_ID,
    conversation: kept('conversation', 'a conversation at the vendor'),
    prompt: kept('prompt', 'a prompt template at the vendor'),
    thread: kept('thread', 'a conversation at the vendor'),
    container: kept('container', 'files at the vendor'),
    background: BACKGROUND,
  },
  parts: {
    text: TEXT,
    refusal: TEXT,
    image_url: {
      sources: {
        data: { class: 'bounded', why: 'counts as `imageTokens`', counts: 'image' },
        url: { class: 'outside', why: 'the vendor fetches it', counts: 'imageByUrl' },
      },
    },
    file: {
      sources: {
        file_data: { class: 'outside', why: 'the vendor unpacks it', counts: 'document' },
        file_id: FILE,
      },
    },
    input_audio: SPEECH,
  },
  tools: {
    function: { class: 'free', why: 'runs at the client', overheads: 0 },
    custom: { class: 'free', why: 'runs at the client', overheads: 0 },
  },
  // No kinds are kept: a call cannot name a stored completion, and no spoken answer is served.
  kept: {},
};

/** Returns the meters of the kinds of output that `modalities` asks for; undefined for an unknown kind. */
function spokenOrDrawn(value: unknown): Needs | undefined {
  if (!Array.isArray(value) || !value.every((each) => ['text', 'audio', 'image'].includes(each))) return undefined;
  const meters: TokenMeter[] = [];
  if (value.includes('audio')) meters.push('audioOutput');
  if (value.includes('image')) meters.push('imageOutput');
  return { meters };
}
