import { defineAdapter } from '../../core/catalog/upstream';
import { ADDRESS_SCHEMA, credentialHeader, requestPath } from './address';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';

/** The adapter for the Responses protocol, as its vendor publishes it. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'responses',
  protocols: ['responses'],
  opens: [{ host: 'api.openai.com' }],
  schema: ADDRESS_SCHEMA,

  request: (call, settings) => ({
    path: requestPath(call, settings, '/v1/responses'),
    headers: Object.assign(forwardedHeaders(call), settings.headers),
    edits: standardEdits(call),
  }),

  authorize: (credential, settings) => credentialHeader(credential, settings, 'bearer'),

  judge: judgeFailure,
});
