import { startNodeRelay } from './node-relay';
import type { Subject } from './subject';

export const httpProxy: Subject = {
  name: 'http-proxy',
  summary: 'the npm package http-proxy, nothing parsed',
  isNode: true,
  streams: true,
  start: (rig, options) => startNodeRelay(rig, 'http-proxy-relay.mjs', options),
};
