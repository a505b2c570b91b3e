import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * The format of API keys and operator tokens: a prefix, 40 random base62 characters, and a checksum in 6 base62 characters. The
 * checksum is the CRC-32 of everything before it, so that a mistyped key is rejected without a lookup.
 */
const PREFIX = 'sk-svc-';
const OPERATOR_PREFIX = 'op-svc-';
const RANDOM_LENGTH = 40;
const CHECKSUM_LENGTH = 6;
export const API_KEY_LENGTH = PREFIX.length + RANDOM_LENGTH + CHECKSUM_LENGTH;

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const AFTER_PREFIX = new RegExp(`^[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

export function makeApiKey(): string {
  return makeSecret(PREFIX);
}

export function makeOperatorToken(): string {
  return makeSecret(OPERATOR_PREFIX);
}

function makeSecret(prefix: string): string {
  const body = prefix + randomBase62(RANDOM_LENGTH);
  return body + checksum(body);
}

/** Returns whether prefix, length, alphabet and checksum are right. Only the ledger knows whether the key exists. */
export function isApiKey(text: string): boolean {
  return isSecret(text, PREFIX);
}

/** Returns whether a token has the right format. Only the database knows whether the token exists. */
export function isOperatorToken(text: string): boolean {
  return isSecret(text, OPERATOR_PREFIX);
}

function isSecret(text: string, prefix: string): boolean {
  if (!text.startsWith(prefix) || !AFTER_PREFIX.test(text.slice(prefix.length))) return false;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text.slice(-CHECKSUM_LENGTH) === checksum(body);
}

/** Returns whether a credential is meant for this gateway: it begins with the prefix of its keys, perhaps after spaces. The key may be invalid. */
export function looksLikeApiKey(credential: string): boolean {
  return credential.trimStart().startsWith(PREFIX);
}

/** Returns the SHA-256 in lower-case hex. Only this hash and the first and last characters of a key or token are stored. */
export function hashApiKey(key: string): string {
  return hash('sha256', key);
}

/** Returns the first and last characters of a key or token. They are stored and shown, so that people recognize it. */
export function displayParts(key: string): { readonly prefix: string; readonly suffix: string } {
  return { prefix: key.slice(0, 11), suffix: key.slice(-4) };
}

/** The largest multiple of 62 (base62 characters) in a byte. Higher byte values are discarded; they would make the first characters more likely. */
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
