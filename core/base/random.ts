import { randomFillSync } from 'node:crypto';

/** Random bytes in stock, because a system call for each call costs more than the bytes. */
const pool = Buffer.allocUnsafeSlow(4_096);
let used = pool.length;

/** Returns random bytes for ids, valid until the next turn of the event loop. They are not for secrets, which must not be in a shared pool. */
export function takeRandom(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.subarray(used - bytes, used);
}
