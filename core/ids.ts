import { v7 } from 'uuid';
import { takeRandom } from './random';

/** Returns a UUIDv7: unique, with its creation time in the first 48 bits. */
export function newId(): string {
  return v7({ random: takeRandom(16) });
}

/** Returns the time inside a UUIDv7, in milliseconds since 1970. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
