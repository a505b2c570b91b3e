import { defineAdapter } from '../../core/catalog/upstream';
import { GeminiReader } from '../../core/protocols/gemini/answer';
import { writeGeminiRequest } from '../../core/protocols/gemini/request';
import { judgeFailure } from './judge-failure';

/** The adapter for Google's generateContent. No client speaks this dialect, so the gateway translates calls of the other protocols. */
export default defineAdapter({
  contract: 'upstream/1',
  name: 'gemini',
  dialect: 'gemini',
  opens: [{ host: 'generativelanguage.googleapis.com' }],
  schema: {
    type: 'object',
    properties: {
      version: { description: 'The version in its paths.', type: 'string', pattern: '^v[0-9a-z]+$', default: 'v1beta' },
    },
  },

  request(call, { version }) {
    const verb = call.conversation.stream ? 'streamGenerateContent?alt=sse' : 'generateContent';
    return { path: `/${version}/models/${encodeURIComponent(call.model)}:${verb}`, body: writeGeminiRequest(call) };
  },

  authorize: (credential) => ({ 'x-goog-api-key': credential }),

  judge: judgeFailure,

  answer: ({ conversation }) => new GeminiReader(conversation.choices),
});
