import { type BodyEdit, defineAdapter } from '../../core/catalog/upstream';
import { authorizeGoogle, CLOUD_STORAGE, GOOGLE_PLACE, googleModel, signForGoogle } from './google-token';
import messages from './messages';
import { forwardedHeaders } from './standard-request';

/** The adapter for Anthropic's models on Google's Vertex AI, in the Messages protocol: rawPredict and streamRawPredict. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'vertex',
  protocols: ['messages'],
  schema: GOOGLE_PLACE,
  opens: CLOUD_STORAGE,

  request(call, settings) {
    const edits: BodyEdit[] = [
      { member: 'priority', drop: true },
      { member: 'model', drop: true },
      { member: 'anthropic_version', set: '"vertex-2023-10-16"' },
    ];
    if (call.members.get('stream') === 'null') edits.push({ member: 'stream', drop: true });
    const verb = call.stream ? 'streamRawPredict' : 'rawPredict';
    return {
      path: `${googleModel(settings, 'anthropic', call.model)}:${verb}`,
      headers: forwardedHeaders(call),
      edits,
    };
  },

  authorize: authorizeGoogle,
  sign: (_request, credential) => signForGoogle(credential),

  judge: messages.judge,
});
