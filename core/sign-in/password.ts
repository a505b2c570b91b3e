import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { fail } from '../base/errors';

/**
 * Hashes passwords of users with Node's own scrypt, which needs no native dependency. With these numbers (32 MiB, three passes),
 * a guess costs as much as OWASP recommends. The stored hash contains the numbers: they can be raised, and older passwords still
 * work.
 */

interface Cost {
  readonly logN: number;
  readonly r: number;
  readonly p: number;
}

const COST: Cost = { logN: 15, r: 8, p: 3 };
const SALT_BYTES = 16;
const HASH_BYTES = 32;
const MAX_MEMORY_BYTES = 64 * 1024 * 1024;

/** How many passwords may wait to be hashed. Each needs 32 MiB and a thread that other work needs too, so one is hashed at a time. */
const MAX_WAITING = 50;

const STORED = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([\w+/]{22})\$([\w+/]{43})$/;

/** Returns the hash of a password in its stored form: `$scrypt$ln=15,r=8,p=3$<salt>$<hash>`. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, COST);
  return `$scrypt$ln=${COST.logN},r=${COST.r},p=${COST.p}$${encode(salt)}$${encode(hash)}`;
}

/** Returns whether the password is right. Without a stored password it takes the same time, so that the time does not reveal which users exist. */
export async function verifyPassword(password: string, stored: string | undefined): Promise<boolean> {
  const [, logN, r, p, salt = '', hash = ''] = STORED.exec(stored ?? '') ?? [];
  if (logN === undefined) {
    await derive(password, Buffer.alloc(SALT_BYTES), COST);
    return false;
  }
  const cost = { logN: Number(logN), r: Number(r), p: Number(p) };
  return timingSafeEqual(await derive(password, Buffer.from(salt, 'base64'), cost), Buffer.from(hash, 'base64'));
}

let waiting = 0;
let last: Promise<unknown> = Promise.resolve();

async function derive(password: string, salt: Buffer, cost: Cost): Promise<Buffer> {
  if (waiting >= MAX_WAITING) throw fail('OVERLOADED', { retryAfterSeconds: 1 });
  waiting += 1;
  const mine = last.then(() => deriveNow(password, salt, cost));
  last = mine.catch(() => undefined).finally(() => (waiting -= 1));
  return mine;
}

function deriveNow(password: string, salt: Buffer, { logN, r, p }: Cost): Promise<Buffer> {
  const options = { N: 2 ** logN, r, p, maxmem: MAX_MEMORY_BYTES };
  return new Promise((resolve, reject) => {
    // The password is normalized, because Unicode can encode the same letters in several ways.
    scrypt(password.normalize('NFKC'), salt, HASH_BYTES, options, (error, hash) =>
      error === null ? resolve(hash) : reject(error),
    );
  });
}

function encode(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
