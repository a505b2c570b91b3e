import type { Knex } from 'knex';
import { fail, type GatewayError, invalidParam } from '../base/errors';
import { parseJson } from '../base/parse-json';

/** One page of a list, with the cursor of the next page; null at the end. */
export interface Page<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

export interface PageRequest {
  readonly limit: number;
  readonly cursor: string | undefined;
}

/**
 * Makes a page from rows, of which the query read one more than `limit`. `keyOf` returns a row's position in the list's order. The next
 * page begins after that position, even if other requests added or deleted earlier rows.
 */
export function toPage<Row, T>(
  rows: readonly Row[],
  limit: number,
  keyOf: (row: Row) => readonly string[],
  toItem: (row: Row) => T,
): Page<T> {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const more = rows.length > limit && last !== undefined;
  return { items: items.map(toItem), nextCursor: more ? encodeCursor(keyOf(last)) : null };
}

/** Returns a page of a query whose rows have UUIDv7 ids, newest first. */
export async function newestPage<Row extends { readonly id: string }, T>(
  query: Knex.QueryBuilder,
  { limit, cursor }: PageRequest,
  toItem: (row: Row) => Promise<T>,
): Promise<Page<T>> {
  const after = decodeIdCursor(cursor);
  if (after !== undefined) query.where('id', '<', after);
  const rows: Row[] = await query.orderBy('id', 'desc').limit(limit + 1);
  const { items, nextCursor } = toPage(rows, limit, ({ id }) => [id], toItem);
  return { items: await Promise.all(items), nextCursor };
}

export function encodeCursor(key: readonly string[]): string {
  return Buffer.from(JSON.stringify(key)).toString('base64url');
}

/**
 * Decodes the cursor of a list's page. `shape` has one pattern per part of the cursor. @throws GatewayError INVALID_FIELD when a part does
 * not match its pattern.
 */
export function decodeCursor(cursor: string, shape: readonly Pick<RegExp, 'test'>[]): readonly string[] {
  const key = parseJson(Buffer.from(cursor, 'base64url').toString('utf8'));
  if (Array.isArray(key) && key.length === shape.length) {
    const parts: unknown[] = key;
    if (shape.every((pattern, index) => typeof parts[index] === 'string' && pattern.test(parts[index]))) {
      return parts as string[];
    }
  }
  throw invalidParam('cursor', 'expected the nextCursor of a previous page');
}

/** Decodes the cursor of a list in the order of its UUIDv7 ids. */
export function decodeIdCursor(cursor: string | undefined): string | undefined {
  return cursor === undefined ? undefined : decodeCursor(cursor, [UUID])[0];
}

export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Returns the condition of the row with an id. No row meets it if the text is no id. */
export function idIs(text: string): { readonly id: string } {
  return { id: UUID.test(text) ? text : '00000000-0000-0000-0000-000000000000' };
}

/** Returns what a query has found. `what` names it in the error. @throws NOT_FOUND */
export function existing<T>(row: T | undefined, what: string): T {
  if (row === undefined) throw missing(what);
  return row;
}

/** Returns the error for something that does not exist, or that the caller may not see. */
export function missing(what: string): GatewayError {
  return fail('NOT_FOUND', { message: `The ${what} does not exist.` });
}
