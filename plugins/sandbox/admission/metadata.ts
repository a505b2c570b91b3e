import { fail } from '../../../core/base/errors';

export type Metadata = Readonly<Record<string, unknown>>;

const MAX_BYTES = 16_384;
const MAX_VALUES = 256;
const MAX_TEXT_LENGTH = 2_048;
const MAX_NAME_LENGTH = 128;

/** The patterns that recognize secrets. Each takes linear time, because two attempts to match never read the same characters. */
const SECRET_NAME =
  /(^|[_.-])((api|access|secret|private|signing|encryption)[_-]?keys?|secrets?|token|passw(or)?ds?|pwd|passphrase|credentials?|authorization|bearer|cookies?)$/i;
const SECRET_VALUE = [
  /\bsk-[A-Za-z0-9_-]{16,}/,
  /\b(gh[pousr]_|github_pat_|glpat-|xox[abposr]-|npm_)[A-Za-z0-9_-]{16,}/,
  /\b(AKIA|ASIA)[A-Z0-9]{16}\b/,
  /\bAIza[A-Za-z0-9_-]{30,}/,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----/,
  /(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}/,
  /\bBearer\s+[A-Za-z0-9._~+/-]{16,}/i,
  /\b[rs]k_(live|test)_[A-Za-z0-9]{16,}/,
  /[a-z0-9+.-]:\/\/[^\s/:@]*:[^\s/@]+@/i,
];

/**
 * Reads the metadata of a creation. It rejects values that look like a key or a token, because metadata is stored, searched and
 * shown in lists.
 * @throws METADATA_INVALID that names the member, never its value
 */
export function readMetadata(value: unknown): Metadata {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'object' || Array.isArray(value)) throw invalid('metadata', 'expected an object');
  const text = JSON.stringify(value);
  if (Buffer.byteLength(text) > MAX_BYTES) throw invalid('metadata', `has more than ${MAX_BYTES} bytes`);
  // Start the count at -1, because the outermost object does not count as a value.
  look(value, 'metadata', 0, { values: -1 });
  return value as Metadata;
}

const DEEPEST = 16;

/** The characters that Postgres cannot store: NUL and half of a surrogate pair. */
const UNKEEPABLE = /\0|\p{Cs}/u;

function look(value: unknown, path: string, depth: number, seen: { values: number }): void {
  seen.values += 1;
  if (seen.values > MAX_VALUES) throw invalid('metadata', `has more than ${MAX_VALUES} values`);
  if (depth > DEEPEST) throw invalid(path, `is nested more than ${DEEPEST} levels deep`);
  if (typeof value === 'string') {
    if (value.length > MAX_TEXT_LENGTH) throw invalid(path, `has more than ${MAX_TEXT_LENGTH} characters`);
    if (UNKEEPABLE.test(value)) throw invalid(path, 'contains characters that cannot be stored');
    if (SECRET_VALUE.some((pattern) => pattern.test(value))) throw invalid(path, 'looks like a secret');
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const [name, member] of Object.entries(value)) {
    const at = Array.isArray(value) ? `${path}[${name}]` : `${path}.${name}`;
    if (name.length > MAX_NAME_LENGTH) throw invalid(path, `has a name of more than ${MAX_NAME_LENGTH} characters`);
    if (UNKEEPABLE.test(name)) throw invalid(path, 'has a name that cannot be stored');
    if (SECRET_VALUE.some((pattern) => pattern.test(name))) throw invalid(path, 'has a name that looks like a secret');
    const isSecretName = SECRET_NAME.test(name.replaceAll(/([a-z])([A-Z])/g, '$1_$2'));
    if (isSecretName && holdsText(member)) throw invalid(at, 'has the name of a secret');
    look(member, at, depth + 1, seen);
  }
}

function holdsText(value: unknown): boolean {
  return Array.isArray(value) ? value.some(holdsText) : typeof value === 'string' && value !== '';
}

function invalid(param: string, why: string) {
  return fail('METADATA_INVALID', { param, message: `${param}: ${why}` });
}
