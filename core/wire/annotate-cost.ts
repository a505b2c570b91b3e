import { formatUsd } from '../money';
import { planSplices } from './body-edits';
import { EventData } from './event-data';
import { findMembers, findPlace, sliceChunks } from './json-members';

const USAGE = ['usage'] as const;

/**
 * Writes the cost of a call into the `usage` of an event: `"cost":0.00012345` as its last member. It replaces a member `cost`.
 * All other bytes stay unchanged, as does an event without a usage object.
 * @param path the members that lead to the usage
 */
export function annotateCost(raw: Buffer, costE8: bigint, path: readonly string[] = USAGE): Buffer {
  const data = new EventData(raw);
  const usage = findPlace(data.chunks, path);
  if (usage === undefined) return raw;

  const text = sliceChunks(data.chunks, usage.valueStart, usage.end);
  const members = findMembers([text]);
  if (members === undefined) return raw;

  const body = { chunks: [text], byteLength: text.length, members };
  const splices = planSplices(body, [{ member: 'cost', set: formatUsd(costE8) }]);
  return data.edited(
    splices.map(({ from, to, text }) => ({ from: usage.valueStart + from, to: usage.valueStart + to, text })),
  );
}
