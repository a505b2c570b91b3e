import type { LineLog } from '../line-log';
import { ACCOUNT_SUMS } from './account-sums';
import type { Call } from './call';
import { callLine } from './call-line';
import { countCall } from './call-metrics';

/** Runs once for each call, when all work at its end is done. */
export type CallEnded = (call: Call) => void;

/** Returns a function that counts each call and logs it. */
export function watchCalls(lines: LineLog): CallEnded {
  return (call) => {
    const ms = performance.now() - call.startedMs;
    countCall(call, ms);
    const { key, facts } = call;
    if (key !== undefined) ACCOUNT_SUMS.add(key.accountId, facts.usage, facts.costE8);
    if (lines.takes(hasFailed(call))) lines.write('call', callLine(call, ms));
  };
}

function hasFailed({ leftAtMs, facts: { status, errorCode } }: Call): boolean {
  return status < 200 || status >= 400 || errorCode !== undefined || leftAtMs !== undefined;
}
