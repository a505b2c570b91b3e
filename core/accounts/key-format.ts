import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * An API key: `sk-svc-`, 40 random base62 characters, and 6 base62 characters of the CRC-32 of what stands before them, so
 * that a mistyped key is refused without asking anybody.
 */
const PREFIX = 'sk-svc-';
const RANDOM_LENGTH = 40;
const CHECKSUM_LENGTH = 6;
export const API_KEY_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH;

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const WELL_FORMED = new RegExp(`^${PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

export function makeApiKey(): string {
  const body = PREFIX + randomBase62(RANDOM_LENGTH);
  return body + checksum(body);
}

/** Prefix, length, alphabet and checksum are right; whether there is such a key is the ledger's to say. */
export function isApiKey(text: string): boolean {
  if (text.length !== API_KEY_LENGTH || !WELL_FORMED.test(text)) return false;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text.slice(-CHECKSUM_LENGTH) === checksum(body);
}

/** Whether a credential is meant for this service: it begins as our keys do, valid or not, perhaps behind spaces. */
export function looksLikeApiKey(credential: string): boolean {
  return credential.trimStart().startsWith(PREFIX);
}

/** SHA-256 in lower-case hex: all that is kept of a key. */
export function hashApiKey(key: string): string {
  return hash('sha256', key);
}

/** What is kept of a key for people to recognise it by. */
export function displayParts(key: string): { readonly prefix: string; readonly suffix: string } {
  return { prefix: key.slice(0, 11), suffix: key.slice(-4) };
}

/** 248 is the largest multiple of 62 in a byte: higher bytes are thrown away, or the first characters would be likelier. */
const FAIR_BELOW = 248;

function randomBase62(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < FAIR_BELOW && text.length < length) text += BASE62[byte % 62];
    }
  }
  return text;
}

function checksum(body: string): string {
  let rest = crc32(body);
  let text = '';
  for (let place = 0; place < CHECKSUM_LENGTH; place += 1) {
    text = BASE62[rest % 62] + text;
    rest = Math.floor(rest / 62);
  }
  return text;
}
