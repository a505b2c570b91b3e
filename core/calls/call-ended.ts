import type { AccessLog } from '../base/access-log';
import { formatUsd } from '../base/money';
import { quoted } from '../base/quoted';
import { INPUT_METERS, outputTokens, tokensOf } from '../catalog/usage';
import type { Call } from './call';
import { countCall } from './call-metrics';
import { ACCOUNT_SUMS } from './top-accounts';

/**
 * Returns the JSON members of the log line of a call that has ended. They contain no text of the client, except the session ids as
 * `SessionIds` records them.
 */
function callLine(call: Call, ms: number): string {
  const { facts, key, request } = call;
  const { model, upstream, usage, errorCode, sessionId } = facts;
  let line = `,"requestId":"${call.id}","method":${quoted(call.method)},"route":${quoted(call.path)}`;
  if (facts.strategy !== undefined) line += `,"strategy":${quoted(facts.strategy)}`;
  if (key !== undefined) line += `,"keyId":${JSON.stringify(key.keyId)},"accountId":${JSON.stringify(key.accountId)}`;
  if (model !== undefined) line += `,"model":${quoted(model)}`;
  if (upstream !== undefined) line += `,"upstream":${quoted(upstream)}`;
  line += `,"attempts":${facts.attempts},"stream":${request?.stream ?? false},"status":${facts.status}`;
  if (call.upstreamSocket !== undefined) line += ',"webSocket":true';
  if (errorCode !== undefined) line += `,"code":"${errorCode}"`;
  if (call.leftAtMs !== undefined) line += ',"aborted":true';
  line += `,"ms":${Math.round(ms)}`;
  if (facts.firstTokenMs !== undefined) line += `,"firstTokenMs":${facts.firstTokenMs}`;
  if (facts.addedMs !== undefined) line += `,"addedMs":${Math.round(facts.addedMs * 10) / 10}`;
  if (usage !== undefined)
    line += `,"inputTokens":${tokensOf(usage, INPUT_METERS) ?? 0},"outputTokens":${outputTokens(usage) ?? 0}`;
  if (facts.billing !== undefined) line += `,"billing":"${facts.billing}","costUsd":"${formatUsd(facts.costE8)}"`;
  if (sessionId !== undefined) line += `,"sessionId":${JSON.stringify(sessionId)}`;
  if (call.traceId !== undefined) line += `,"traceId":"${call.traceId}"`;
  return line;
}

/** Runs once for each call, after all end-of-call handlers. */
export type CallEnded = (call: Call) => void;

/** Returns the function that counts each call that has ended and writes its log line. */
export function watchCalls(lines: AccessLog): CallEnded {
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
