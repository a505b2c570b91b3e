import type { Knex } from 'knex';
import { mapValues } from '../../../core/base/collections';
import { formatUsd } from '../../../core/base/money';

/**
 * The endings of the names of columns that hold times. The column `created_at` (a Date) becomes the member `createdAtMs` (a number), and
 * `reserved_e8` becomes `reservedE8`. Other columns keep their value under the camelCase name.
 */
const IS_TIME = /_(at|until|since)$/;

const names = new Map<string, { readonly field: string; readonly isTime: boolean }>();

function fieldOf(column: string) {
  let known = names.get(column);
  if (known === undefined) {
    const isTime = IS_TIME.test(column);
    const field = column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase()) + (isTime ? 'Ms' : '');
    known = { field, isTime };
    names.set(column, known);
  }
  return known;
}

/** Converts a database row to an object of the program. Also accepts a row read as JSON, in which times are texts and amounts are numbers below 2^53. */
export function fromRow<T>(row: Readonly<Record<string, unknown>>): T {
  const value: Record<string, unknown> = {};
  for (const [column, cell] of Object.entries(row)) {
    const { field, isTime } = fieldOf(column);
    if (cell === null) value[field] = null;
    else if (isTime) value[field] = cell instanceof Date ? cell.getTime() : Date.parse(cell as string);
    else if (field.endsWith('E8') && typeof cell !== 'bigint') value[field] = BigInt(cell as string);
    else value[field] = cell;
  }
  return value as T;
}

/** Returns the first row of a query, converted to an object of the program; undefined if there is no row. */
export async function firstOf<T>(query: Knex.QueryBuilder): Promise<T | undefined> {
  const [row]: Readonly<Record<string, unknown>>[] = await query;
  return row === undefined ? undefined : fromRow<T>(row);
}

export function toRow(value: object): Record<string, unknown> {
  const row: Record<string, unknown> = {};
  for (const [field, cell] of Object.entries(value)) {
    const isTime = field.endsWith('Ms') && IS_TIME.test(snake(field.slice(0, -2)));
    const column = snake(isTime ? field.slice(0, -2) : field);
    if (cell === undefined) continue;
    if (isTime && cell !== null) row[column] = new Date(cell as number);
    else if (cell !== null && typeof cell === 'object') row[column] = JSON.stringify(cell);
    else row[column] = cell;
  }
  return row;
}

function snake(field: string): string {
  return field.replace(/E8$/, '_e8').replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Returns the members of an object that the schema `members` names, as an answer shows them: times as text, amounts in USD. */
export function show(members: Readonly<Record<string, object>>, value: object): Readonly<Record<string, unknown>> {
  const values = value as Readonly<Record<string, unknown>>;
  return mapValues(members, (_, name) => {
    if (`${name}Ms` in value) return showTime(values[`${name}Ms`] as number | null);
    if (!(`${name}E8` in value)) return values[name];
    const amountE8 = values[`${name}E8`] as bigint | null;
    return amountE8 === null ? null : formatUsd(amountE8);
  });
}

export function showTime(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}
