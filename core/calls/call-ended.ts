import type { LineLog } from '../line-log';
import { ACCOUNT_SUMS } from './account-sums';
import type { Call } from './call';
import { countCall } from './call-figures';
import { callLine } from './call-line';

/** Sees each call once, when all work at its end is done. */
export type CallEnded = (call: Call) => void;

/** Returns what counts each call and logs it. */
export function watchCalls(lines: LineLog): CallEnded {
  return (call) => {
    const { status, errorCode } = call.facts;
    const ms = performance.now() - call.startedMs;
    countCall(call, ms);
    ACCOUNT_SUMS.add(call);
    if (lines.takes(status < 200 || status >= 400 || errorCode !== undefined)) lines.write('call', callLine(call, ms));
  };
}
