import { registerAdapter } from '../../core/catalog/adapters';
import { definePlugin } from '../../core/gateway/plugin';
import bedrock from './bedrock';
import chat from './chat';
import converse from './converse';
import embeddings from './embeddings';
import gemini from './gemini';
import messages from './messages';
import responses from './responses';
import vertex from './vertex';
import vertexGemini from './vertex-gemini';

export default definePlugin({
  contract: 'plugin/1',
  name: 'upstreams',
  summary: 'The wire dialects upstreams speak; one file each.',
  schema: { type: 'object', properties: {} },
  register: () => {
    registerAdapter(messages);
    registerAdapter(chat);
    registerAdapter(responses);
    registerAdapter(embeddings);
    registerAdapter(bedrock);
    registerAdapter(converse);
    registerAdapter(vertex);
    registerAdapter(vertexGemini);
    registerAdapter(gemini);
  },
});
