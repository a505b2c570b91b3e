import { startNodeRelay } from './node-relay';
import type { Subject } from './subject';

export const undiciRelay: Subject = {
  name: 'undici-relay',
  summary: 'node:http and undici, body and answer parsed, nothing else: the limit for Node',
  isNode: true,
  streams: true,
  start: (rig, options) => startNodeRelay(rig, 'undici-relay.mjs', options),
};

/** The undici relay in two processes. It shows the cost of two busy processes instead of one on this machine. */
export const undiciRelayWorkers: Subject = {
  name: 'undici-relay-workers',
  summary: 'the same in two processes; `workers` only',
  isNode: true,
  streams: true,
  only: ['workers'],
  start: (rig, options) => startNodeRelay(rig, 'undici-relay.mjs', options, { WORKERS: '2' }),
};
