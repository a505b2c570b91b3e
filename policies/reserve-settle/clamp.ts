import type { ModelRequest } from '../../core/calls/call';
import type { Candidate } from '../../core/catalog/catalog';
import { PROTOCOLS } from '../../core/catalog/protocols';
import { holdFor, mostOutputTokens } from './hold';

/** The output that a clamped call gets at least, in tokens of each choice. */
const LEAST_OUTPUT = 1_024;

/** Returns the least hold that serves a call; undefined for one that takes no limit. */
export function leastHold(request: ModelRequest, candidates: readonly Candidate[]): bigint | undefined {
  if (request.operation !== undefined) return undefined;
  const maxOutputTokens = Math.min(LEAST_OUTPUT, mostOutputTokens(request, candidates));
  return holdFor({ ...request, maxOutputTokens }, candidates);
}

/** Returns the call with the highest output limit that this hold covers. It covers the least hold. */
export function clampTo(heldE8: bigint, request: ModelRequest, candidates: readonly Candidate[]): ModelRequest {
  // A limit that the client did not name must be one that every candidate accepts.
  const asked =
    request.maxOutputTokens === undefined ? leastMaxOutput(candidates) : mostOutputTokens(request, candidates);
  let most = Math.min(LEAST_OUTPUT, asked);
  let tooMany = asked + 1;
  while (tooMany - most > 1) {
    const middle = most + Math.floor((tooMany - most) / 2);
    if (holdFor({ ...request, maxOutputTokens: middle }, candidates) <= heldE8) most = middle;
    else tooMany = middle;
  }
  return limitedTo(most, request);
}

/** Returns the call with a limit that every candidate accepts written into its body, if the client named none. */
export function withLimit(request: ModelRequest, candidates: readonly Candidate[]): ModelRequest {
  if (request.maxOutputTokens !== undefined || request.operation !== undefined) return request;
  return limitedTo(leastMaxOutput(candidates), request);
}

function leastMaxOutput(candidates: readonly Candidate[]): number {
  return Math.min(...candidates.map(({ model }) => model.maxOutput));
}

/**
 * Returns the call with this limit under the names that the client used. It raises none of them. Adapters see the result like a
 * client's own limit.
 */
function limitedTo(maxOutputTokens: number, request: ModelRequest): ModelRequest {
  const limits: readonly string[] = PROTOCOLS[request.protocol].limits;
  const usual = limits.slice(0, 1);
  const named = limits.filter((member) => (request.members.get(member) ?? 'null') !== 'null');
  const lowered = (member: string) => Math.min(Number(request.members.get(member)), maxOutputTokens);
  const edits =
    named.length === 0
      ? usual.map((member) => ({ member, set: String(maxOutputTokens) }))
      : named.map((member) => ({ member, set: String(lowered(member)) }));
  const members = new Map(request.members);
  for (const { member, set } of edits) members.set(member, set);
  return { ...request, maxOutputTokens, members, edits };
}
