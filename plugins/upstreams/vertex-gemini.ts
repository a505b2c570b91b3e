import { defineAdapter } from '../../core/catalog/upstream';
import { writeGeminiRequest } from '../../core/protocols/gemini/request';
import gemini from './gemini';
import { authorizeGoogle, CLOUD_STORAGE, GOOGLE_PLACE, googleModel, signForGoogle } from './google-token';

/** The adapter for Gemini on Google's Vertex AI. It has the same dialect as Gemini's own API, another path, and Google Cloud credentials. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'vertex-gemini',
  dialect: gemini.dialect,
  schema: GOOGLE_PLACE,
  opens: CLOUD_STORAGE,

  request(call, settings) {
    const verb = call.conversation.stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    return { path: `${googleModel(settings, 'google', call.model)}:${verb}`, body: writeGeminiRequest(call) };
  },

  authorize: authorizeGoogle,
  sign: (_request, credential) => signForGoogle(credential),

  judge: gemini.judge,
  answer: gemini.answer,
});
