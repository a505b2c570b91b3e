import { billedRelay } from './billed-relay';
import { direct } from './direct';
import { httpProxy } from './http-proxy';
import { nginxProxy } from './nginx-proxy';
import { portkey } from './portkey';
import type { Subject } from './subject';
import {
  tollgate,
  tollgateAccounts,
  tollgateAccountsBefore,
  tollgateBefore,
  tollgateExpress,
  tollgateKeys,
  tollgateKeysBefore,
  tollgateMessages,
  tollgateObserved,
  tollgateResponses,
  tollgateRollout,
  tollgateShadow,
  tollgateSpread,
  tollgateUnobserved,
  tollgateWide,
  tollgateWorkers,
} from './tollgate';
import { undiciRelay, undiciRelayWorkers } from './undici-relay';

/** All programs that the bench measures, in the order of the result table. */
export const SUBJECTS: readonly Subject[] = [
  direct,
  nginxProxy,
  undiciRelay,
  undiciRelayWorkers,
  billedRelay,
  httpProxy,
  portkey,
  tollgateExpress,
  tollgateBefore,
  tollgate,
  tollgateMessages,
  tollgateResponses,
  tollgateSpread,
  tollgateWide,
  tollgateRollout,
  tollgateShadow,
  tollgateKeysBefore,
  tollgateKeys,
  tollgateAccountsBefore,
  tollgateAccounts,
  tollgateWorkers,
  tollgateUnobserved,
  tollgateObserved,
];
