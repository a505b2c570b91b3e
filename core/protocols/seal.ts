import { asText } from '../base/json-values';
import { parseJson } from '../base/parse-json';
import type { Signature } from '../catalog/conversation';

/** The prefix of every signature that the gateway encodes for a client of another dialect. Vendors' own signatures are base64 without a dot. */
export const SEAL = 'tollgate.';

/** Encodes a signature with its dialect and upstream as one text for the client, which sends the text back unchanged. */
export function seal({ upstream, dialect, value }: Signature): string {
  return SEAL + Buffer.from(JSON.stringify([dialect, upstream, value])).toString('base64url');
}

/** Returns the signature that `seal` encoded in a text; undefined for any other value. */
export function unseal(text: unknown): Signature | undefined {
  if (typeof text !== 'string' || !text.startsWith(SEAL)) return undefined;
  const read = parseJson(Buffer.from(text.slice(SEAL.length), 'base64url').toString());
  if (!Array.isArray(read)) return undefined;
  const [dialect, upstream, value] = read.map(asText);
  return dialect && upstream && value ? { dialect, upstream, value } : undefined;
}

/** Returns the value of a signature if this upstream and this dialect made it; undefined otherwise. */
export function unsealFor(signature: Signature | undefined, upstream: string, dialect: string): string | undefined {
  const isGood = signature?.upstream === upstream && signature.dialect === dialect;
  return isGood ? signature.value : undefined;
}
