// @ts-check
// An upstream that deviates from Chat: its path names the model, its own header has the credential, its input count includes
// cached tokens, and an error may have status 200.
const { manifest } = require('tollgate/manifest');
const { defineAdapter } = require('tollgate/upstream');
const { UNKNOWN_USAGE, usageOf } = require('tollgate/usage');

const adapter = defineAdapter({
  contract: 'upstream/1',
  name: 'example-upstream', // `adapter: example-upstream` in serviceEndpoints
  protocols: ['chat'], // the protocols of its clients
  schema: { type: 'object', properties: {} }, // the schema of `adapterSettings`

  request: (call) => ({
    path: `/v2/models/${encodeURIComponent(call.model)}/chat${call.query}`,
    headers: {},
    edits: [
      { member: 'model', drop: true },
      { member: 'priority', drop: true }, // a member of Tollgate's own
      // Without this member a stream ends without counts.
      ...(call.stream ? [{ member: 'stream_options', set: '{"include_usage":true}' }] : []),
    ],
  }),

  authorize: (credential) => ({ 'x-example-key': credential }),

  judge({ status, body }) {
    if (objectOf(objectOf(body)['error'])['code'] === 'context_length_exceeded') return 'larger-context';
    // 200: an error event, or an error with a status of success.
    return status < 300 || status >= 500 || ASK_NEXT.has(status) ? 'next' : 'relay';
  },

  readEvent({ data }) {
    if (data === undefined) return {};
    if (data === '[DONE]') return { done: true };
    const chunk = parse(data);
    if (chunk === undefined) return { malformed: true };
    if (chunk['error'] !== undefined) return { error: { body: chunk } };
    const choices = arrayOf(chunk['choices']).map(objectOf);
    const said = choices.map(({ delta }) => saidIn(delta)).join('');
    const finishedChoices = choices
      .filter((each) => each['finish_reason'])
      .map((each, at) => countOf(each['index']) ?? at);
    return {
      ...(said !== '' && { content: true, contentBytes: Buffer.byteLength(said) }),
      ...(finishedChoices.length > 0 && { finish: true, finishedChoices }),
      ...(chunk['usage'] !== undefined && { usage: usageIn(chunk), finalUsage: true }),
    };
  },

  readBody(body) {
    const answer = objectOf(body);
    if (answer['error'] !== undefined) return { usage: UNKNOWN_USAGE, contentBytes: 0, error: { body } };
    const said = arrayOf(answer['choices']).map((choice) => saidIn(objectOf(choice)['message']));
    return { usage: usageIn(answer), contentBytes: Buffer.byteLength(said.join('')) };
  },
});

/** Statuses after which another upstream may succeed. */
const ASK_NEXT = new Set([401, 402, 403, 404, 408, 409, 425, 429]);

/** Returns the text and the arguments of tool calls. @param {unknown} message */
function saidIn(message) {
  const { content, tool_calls: calls } = objectOf(message);
  const given = arrayOf(calls).map((call) => objectOf(objectOf(call)['function'])['arguments']);
  return [content, ...given].filter((each) => typeof each === 'string').join('');
}

/** Reads the usage. Counts that are not reported stay unknown, because a zero would make the call free. @param {Record<string, unknown>} answer */
function usageIn(answer) {
  const usage = objectOf(answer['usage']);
  const prompt = countOf(usage['prompt_tokens']);
  const cacheRead = countOf(usage['cached_tokens']);
  const input = prompt === undefined ? undefined : prompt - (cacheRead ?? 0);
  return usageOf({ input, output: countOf(usage['completion_tokens']), cacheRead });
}

// Upstreams may send values of any type. For an unexpected one these functions return an empty value or undefined; they never throw.

/** @param {string} text @returns {Record<string, unknown> | undefined} */
function parse(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** @param {unknown} value @returns {Record<string, unknown>} */
function objectOf(value) {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** @param {unknown} value @returns {unknown[]} */
function arrayOf(value) {
  return Array.isArray(value) ? value : [];
}

/** @param {unknown} value @returns {number | undefined} */
function countOf(value) {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

module.exports = manifest({ adapters: [adapter] });
