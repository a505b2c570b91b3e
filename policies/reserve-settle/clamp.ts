import type { ModelRequest } from '../../core/calls/call';
import type { Candidate } from '../../core/catalog/catalog';
import { PROTOCOLS } from '../../core/catalog/protocols';
import { holdFor, mostOutputTokens } from './hold';

/**
 * Returns the call with the highest output limit that this money covers. Returns undefined if it covers not even one token, or if
 * the call takes no limit.
 */
export function clampTo(
  availableE8: bigint,
  request: ModelRequest,
  candidates: readonly Candidate[],
): ModelRequest | undefined {
  if (request.operation !== undefined) return undefined;
  const isAffordable = (maxOutputTokens: number): boolean =>
    holdFor({ ...request, maxOutputTokens }, candidates) <= availableE8;
  const asked = mostOutputTokens(request, candidates);
  let most = Math.min(1, asked);
  if (!isAffordable(most)) return undefined;
  let tooMany = asked + 1;
  while (tooMany - most > 1) {
    const middle = most + Math.floor((tooMany - most) / 2);
    if (isAffordable(middle)) most = middle;
    else tooMany = middle;
  }
  return limitedTo(most, request);
}

/** Returns the call with a limit that every candidate accepts written into its body, if the client named none. */
export function withLimit(request: ModelRequest, candidates: readonly Candidate[]): ModelRequest {
  if (request.maxOutputTokens !== undefined || request.operation !== undefined) return request;
  return limitedTo(Math.min(...candidates.map(({ model }) => model.maxOutput)), request);
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
