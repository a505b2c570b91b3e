import { defineAdapter, USUAL_VERSION } from '../../core/catalog/upstream';
import { ADDRESS_SCHEMA, credentialHeader, requestPath } from './address';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';

/** The adapter for the Messages protocol, as its vendor publishes it. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'messages',
  protocols: ['messages'],
  opens: [{ host: 'api.anthropic.com' }],
  schema: ADDRESS_SCHEMA,

  request(call, settings) {
    const headers: Record<string, string> = Object.assign(forwardedHeaders(call), settings.headers);
    // Clients of this gateway may write `protoa-` instead of the vendor's header prefix.
    if (headers['anthropic-version'] === undefined && headers['protoa-version'] === undefined) {
      headers['anthropic-version'] = USUAL_VERSION;
    }
    return { path: requestPath(call, settings, '/v1/messages'), headers, edits: standardEdits(call) };
  },

  authorize: (credential, settings) => credentialHeader(credential, settings, 'x-api-key'),

  judge: judgeFailure,
});
