import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { invalidParam } from '../base/errors';

/** Returns the entity tag of an answer that has no version number: a hash of its content. */
export function contentTag(content: string | Buffer): string {
  return `"${createHash('sha256').update(content).digest('base64url').slice(0, 22)}"`;
}

/** Returns the entity tag of a record with a version number. */
export function versionTag(version: number): string {
  return `"${version}"`;
}

/**
 * Returns the versions in `If-Match`; undefined if any version is accepted.
 * @throws INVALID_FIELD
 */
export function readIfMatch({ headers }: IncomingMessage): readonly number[] | undefined {
  const text = headers['if-match'];
  if (text === undefined || text.trim() === '*') return undefined;
  return text.split(',').map((part) => {
    const version = /^\s*"(\d{1,9})"\s*$/.exec(part)?.[1];
    if (version !== undefined) return Number(version);
    throw invalidParam('If-Match', 'expected the ETag that an earlier answer returned');
  });
}
