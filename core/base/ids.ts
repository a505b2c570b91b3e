import { v7 } from 'uuid';
import { takeRandom } from './random';

/** The bytes of the newest id. Node converts them to text, because the UUID library would allocate 24 strings for each id. */
const bytes = Buffer.allocUnsafeSlow(16);

/** Returns a UUIDv7: unique, with its creation time in the first 48 bits. */
export function newId(): string {
  const hex = v7({ random: takeRandom(16) }, bytes).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Returns the creation time in a UUIDv7, in milliseconds since 1970. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
