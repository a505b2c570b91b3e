import { v7 } from 'uuid';
import { takeRandom } from './random';

/** A UUIDv7: unique, and its first 48 bits are the time it was made. */
export function newId(): string {
  return v7({ random: takeRandom(16) });
}

/** The time inside a UUIDv7, in milliseconds since 1970. */
export function timeOfId(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}
