import { definePlugin } from '../../core/plugin';
import { registerAdapter } from '../../core/upstream';
import chat from './chat';
import messages from './messages';

export default definePlugin({
  name: 'upstreams',
  summary: 'The wire dialects upstreams speak; one file each.',
  schema: { type: 'object', properties: {} },
  register: () => {
    registerAdapter(messages);
    registerAdapter(chat);
  },
});
