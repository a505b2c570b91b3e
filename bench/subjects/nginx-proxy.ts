import { CHAT_PATH } from '../bodies';
import { startProxyNginx } from '../nginx';
import type { Subject } from './subject';

export const nginxProxy: Subject = {
  name: 'nginx-proxy',
  summary: 'nginx as a proxy, one worker: what a relay in C costs',
  isNode: false,
  streams: true,
  start: async (rig, { upstream }) => {
    const { url, pid } = await startProxyNginx(rig, upstream.url);
    return { url: url + CHAT_PATH, headers: {}, pids: [pid], storePids: [] };
  },
};
