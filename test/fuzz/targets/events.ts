import { chatEvents } from '../../../demo/dialects/chat';
import { messagesEvents } from '../../../demo/dialects/messages';
import { answerOf } from '../../support/scripts/answer';
import { cut, mutateBytes } from '../mutate';
import { MODEL } from '../rig';
import type { Target } from './target';

/** Sends streams of any bytes from the upstream: the call must end, and nothing may stay held. */
export const events: Target = {
  name: 'events',
  summary: 'server-sent events of upstreams',
  isOfGateway: true,
  run: async (rig, random) => {
    const isChat = random.below(2) === 0;
    const answer = answerOf({ texts: ['one ', 'two'] }, isChat ? 'chatcmpl' : 'msg');
    const stream = (isChat ? chatEvents(answer, true) : messagesEvents(answer)).join('');
    rig.answerNextWith(cut(random, mutateBytes(random, Buffer.from(stream))));
    const { gateway, key } = rig;
    const body = { model: MODEL, max_tokens: 10, messages: [{ role: 'user', content: 'hello' }], stream: true };
    const { status } = await gateway.call(isChat ? '/v1/chat/completions' : '/v1/messages', { key, body });
    if (status === 500) throw new Error('a stream was answered with 500');
  },
};
