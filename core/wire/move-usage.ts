import { planSplices } from './body-edits';
import { EventData } from './event-data';
import { sliceChunks } from './json-members';

/**
 * Writes the `usage` of the event `from` into the event `into`, and replaces one that is there. All other bytes of `into` stay
 * unchanged. Returns undefined if the data of either is no JSON object, or `from` has no usage.
 */
export function moveUsage(from: Buffer, into: Buffer): Buffer | undefined {
  const source = new EventData(from);
  const usage = source.members?.get('usage');
  const target = new EventData(into);
  const { chunks, byteLength, members } = target;
  if (usage === undefined || members === undefined) return undefined;

  // A line feed between two `data:` lines is white space of the JSON. Inside of one line it would end the event.
  const set = sliceChunks(source.chunks, usage.valueStart, usage.end).toString().replaceAll('\n', ' ');
  return target.edited(planSplices({ chunks, byteLength, members }, [{ member: 'usage', set }]));
}
