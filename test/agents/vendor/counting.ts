import { createHash } from 'node:crypto';
import type { Counts, Turn } from './turn';

/**
 * The vendor's prices in units of 1e-8 USD, equal to those of the gateway's configuration in USD per million tokens. They are written twice, so that
 * a mistake in either shows.
 */
export const UNITS = {
  input: 300n,
  cacheRead: 30n,
  cacheWrite: 375n,
  cacheWrite1h: 600n,
  output: 1_500n,
  webSearch: 1_000_000n,
} as const;

const CHARACTERS_PER_TOKEN = 4;
const TOKENS_PER_IMAGE = 1_200;
/** The shortest prefix that is cached without a request for caching. */
const KEPT_FROM_TOKENS = 1_024;

export function chargeOf(counts: Counts): bigint {
  return (
    BigInt(counts.input) * UNITS.input +
    BigInt(counts.cacheRead) * UNITS.cacheRead +
    BigInt(counts.cacheWrite) * UNITS.cacheWrite +
    BigInt(counts.cacheWrite1h) * UNITS.cacheWrite1h +
    BigInt(counts.output) * UNITS.output +
    BigInt(counts.webSearches) * UNITS.webSearch
  );
}

/** The request body in the pieces of a cache: the parts that stay between calls first, and then each message. */
export interface Prompt {
  readonly pieces: readonly unknown[];
  /** The number of pieces that the cache may store. */
  readonly kept: number;
  /** Whether writing to the cache is charged; undefined: free. */
  readonly writes: '5m' | '1h' | undefined;
}

/** Counts the usage of a call. `seen` has the prompt prefixes in the cache; the call adds its own. */
export function countsOf({ pieces, kept, writes }: Prompt, turn: Turn, seen: Set<string>): Counts {
  const keeps = writes !== undefined || tokensOf(pieces.slice(0, kept)) >= KEPT_FROM_TOKENS;
  const beginnings = keeps ? beginningsOf(pieces.slice(0, kept)) : [];
  const hit = beginnings.findLastIndex((each) => seen.has(each)) + 1;
  for (const each of beginnings) seen.add(each);
  const written = writes === undefined ? 0 : tokensOf(pieces.slice(hit, kept));
  const reasoning = sum(turn, (part) => (part.kind === 'reasoning' ? part.text.length : 0));
  const shown = sum(turn, (part) => {
    if (part.kind === 'text') return part.text.length;
    return part.kind === 'call' ? JSON.stringify(part.input).length + part.name.length : 0;
  });
  return {
    input: tokensOf(pieces.slice(hit)) - written,
    cacheRead: tokensOf(pieces.slice(0, hit)),
    cacheWrite: writes === '1h' ? 0 : written,
    cacheWrite1h: writes === '1h' ? written : 0,
    output: toTokens(shown) + toTokens(reasoning) + 1,
    reasoning: toTokens(reasoning),
    webSearches: turn.parts.filter((part) => part.kind === 'webSearch').length,
  };
}

/** Returns a name for the first piece, for the first two, and so on. */
function beginningsOf(pieces: readonly unknown[]): readonly string[] {
  const hash = createHash('sha256');
  return pieces.map((piece) => {
    hash.update(`${JSON.stringify(piece)}\n`);
    return hash.copy().digest('hex');
  });
}

function tokensOf(pieces: readonly unknown[]): number {
  const tokens = pieces.map((piece) => {
    const { text, images } = withoutImages(piece);
    return toTokens(text.length) + images * TOKENS_PER_IMAGE;
  });
  return tokens.reduce((total, each) => total + each, 0);
}

/** Returns the number of images in a request. */
export function imagesIn(body: unknown): number {
  return withoutImages(body).images;
}

/** Removes images from a request, in whichever form its dialect writes them. */
function withoutImages(value: unknown): { readonly text: string; readonly images: number } {
  let images = 0;
  const text = JSON.stringify(value ?? '', (key, each: unknown) => {
    if (!isImage(key, each)) return each;
    images += 1;
    return '';
  });
  return { text, images };
}

function isImage(key: string, value: unknown): boolean {
  if (typeof value !== 'string') return false;
  return key === 'data' ? value.length > 64 : value.startsWith('data:image/');
}

function toTokens(characters: number): number {
  return Math.ceil(characters / CHARACTERS_PER_TOKEN);
}

function sum({ parts }: Turn, lengthOf: (part: Turn['parts'][number]) => number): number {
  return parts.reduce((total, part) => total + lengthOf(part), 0);
}
