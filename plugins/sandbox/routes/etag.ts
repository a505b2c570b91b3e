import type { IncomingMessage } from 'node:http';
import { fail } from '../../../core/errors';

/** What the document says of it. */
export const ETAG = { ETag: 'Changes with its state; for `If-Match`.' };

export function etagOf(stateVersion: number): string {
  return `"${stateVersion}"`;
}

/** The versions that `If-Match` lets through; undefined for any. @throws INVALID_FIELD */
export function readIfMatch({ headers }: IncomingMessage): readonly number[] | undefined {
  const text = headers['if-match'];
  if (text === undefined || text.trim() === '*') return undefined;
  return text.split(',').map((part) => {
    const version = /^\s*"(\d{1,9})"\s*$/.exec(part)?.[1];
    if (version !== undefined) return Number(version);
    throw fail('INVALID_FIELD', { param: 'If-Match', message: 'If-Match: expected the ETag of an earlier answer' });
  });
}
