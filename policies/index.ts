import type { Policy } from '../core/gateway/policy';
import directRouting from './direct-routing';
import failover from './failover';
import keyAuth from './key-auth';
import modelRequest from './model-request';
import reserveSettle from './reserve-settle';
import sseRelay from './sse-relay';
import strategyRouting from './strategy-routing';
import tokenMetering from './token-metering';

/** All policies, in the order in which a call passes them. */
export const policies: readonly Policy[] = [
  keyAuth,
  modelRequest,
  strategyRouting,
  directRouting,
  reserveSettle,
  tokenMetering,
  failover,
  sseRelay,
];
