import { startNodeRelay } from './node-relay';
import type { Subject } from './subject';

export const billedRelay: Subject = {
  name: 'billed-relay',
  summary: "the same, with the ledger's two steps a call in a real Redis: the yardstick",
  isNode: true,
  streams: true,
  start: async (rig, options) => {
    const dist = await rig.dist();
    const redis = await rig.redis();
    const env = { DIST_FOLDER: dist, REDIS_URL: redis.url };
    return { ...(await startNodeRelay(rig, 'billed-relay.mjs', options, env, [redis.pid])), redisUrl: redis.url };
  },
};
