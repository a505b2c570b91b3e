import { randomFillSync } from 'node:crypto';

/** A stock of random bytes, because one system call for each client request would cost more than the bytes. */
const pool = Buffer.allocUnsafeSlow(4_096);
let used = pool.length;

/** Returns random bytes for ids, valid until the next turn of the event loop. They must not become secrets, because they are in a shared pool. */
export function takeRandom(bytes: number): Buffer {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.subarray(used - bytes, used);
}
