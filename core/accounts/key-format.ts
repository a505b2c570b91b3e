import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/**
 * An API key, or the token of an operator: a prefix, 40 random base62 characters, and 6 base62 characters of the CRC-32 of what stands
 * before them, so that a mistyped one is refused without asking anybody.
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

/** Prefix, length, alphabet and checksum are right; whether there is such a key is the ledger's to say. */
export function isApiKey(text: string): boolean {
  return isSecret(text, PREFIX);
}

/** The same of a token; whether there is such a one is the database's to say. */
export function isOperatorToken(text: string): boolean {
  return isSecret(text, OPERATOR_PREFIX);
}

function isSecret(text: string, prefix: string): boolean {
  if (!text.startsWith(prefix) || !AFTER_PREFIX.test(text.slice(prefix.length))) return false;
  const body = text.slice(0, -CHECKSUM_LENGTH);
  return text.slice(-CHECKSUM_LENGTH) === checksum(body);
}

/** Whether a credential is meant for this service: it begins as our keys do, valid or not, perhaps behind spaces. */
export function looksLikeApiKey(credential: string): boolean {
  return credential.trimStart().startsWith(PREFIX);
}

/** SHA-256 in lower-case hex: all that is kept of a key or a token. */
export function hashApiKey(key: string): string {
  return hash('sha256', key);
}

/** What is kept of a key or a token for people to recognise it by. */
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
