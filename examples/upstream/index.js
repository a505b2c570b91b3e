// @ts-check
// An upstream that speaks Chat with differences: its path names the model, its own header has the credential, and an error may have
// status 200. The gateway reads the answers of every protocol itself.
const { manifest } = require('tollgate/manifest');
const { defineAdapter } = require('tollgate/upstream');

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
});

/** Statuses after which another upstream may succeed. */
const ASK_NEXT = new Set([401, 402, 403, 404, 408, 409, 425, 429]);

/** Upstreams may send values of any type. @param {unknown} value @returns {Record<string, unknown>} */
function objectOf(value) {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

module.exports = manifest({ adapters: [adapter] });
