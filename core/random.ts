import { randomFillSync } from 'node:crypto';

/** A call to the system per call would cost more than the bytes. */
const pool = Buffer.allocUnsafeSlow(4_096);
let used = pool.length;

/** Random bytes for ids, valid until the next turn of the event loop. Not for secrets, which must not stand in a shared pool. */
export function takeRandom(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.subarray(used - bytes, used);
}
