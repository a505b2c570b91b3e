import { CHAT_PATH } from '../bodies';
import type { Subject } from './subject';

export const direct: Subject = {
  name: 'direct',
  summary: 'the upstream itself, nothing between',
  isNode: false,
  streams: true,
  start: async (_rig, { upstream }) => ({
    url: upstream.url + CHAT_PATH,
    headers: {},
    pids: [upstream.pid],
    storePids: [],
  }),
};
