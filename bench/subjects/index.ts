import { billedRelay } from './billed-relay';
import { direct } from './direct';
import { httpProxy } from './http-proxy';
import { nginxProxy } from './nginx-proxy';
import { portkey } from './portkey';
import type { Subject } from './subject';
import {
  tollgate,
  tollgateBefore,
  tollgateExpress,
  tollgateResponses,
  tollgateRollout,
  tollgateShadow,
  tollgateSpread,
  tollgateWide,
} from './tollgate';
import { undiciRelay } from './undici-relay';

/** In the order of the table. */
export const SUBJECTS: readonly Subject[] = [
  direct,
  nginxProxy,
  undiciRelay,
  billedRelay,
  httpProxy,
  portkey,
  tollgateExpress,
  tollgateBefore,
  tollgate,
  tollgateResponses,
  tollgateSpread,
  tollgateWide,
  tollgateRollout,
  tollgateShadow,
];
