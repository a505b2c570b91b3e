import { defineAdapter } from '../../core/catalog/upstream';
import { ADDRESS_SCHEMA, credentialHeader, requestPath } from './address';
import { judgeFailure } from './judge-failure';
import { forwardedHeaders, standardEdits } from './standard-request';

/** The adapter for the Embeddings protocol. Answers are never streamed and have no output tokens. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'embeddings',
  protocols: ['embeddings'],
  schema: ADDRESS_SCHEMA,

  request: (call, settings) => ({
    path: requestPath(call, settings, '/v1/embeddings'),
    headers: Object.assign(forwardedHeaders(call), settings.headers),
    edits: standardEdits(call),
  }),

  authorize: (credential, settings) => credentialHeader(credential, settings, 'bearer'),

  judge: judgeFailure,
});
