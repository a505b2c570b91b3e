import { startNodeRelay } from './node-relay';
import type { Subject } from './subject';

export const undiciRelay: Subject = {
  name: 'undici-relay',
  summary: 'node:http and undici, body and answer parsed, nothing else: the limit for Node',
  isNode: true,
  streams: true,
  start: (rig, options) => startNodeRelay(rig, 'undici-relay.mjs', options),
};
