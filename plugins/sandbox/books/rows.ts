import { mapValues } from '../../../core/map-values';
import { formatUsd } from '../../../core/money';

/**
 * Columns whose names end like this hold times. `created_at` (a Date) becomes `createdAtMs` (a number), and `reserved_e8` becomes
 * `reservedE8`. Other columns keep their value under the camelCase name.
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

/** Converts a row to a value of the program. Accepts a row that came as JSON too, where times are texts and amounts are numbers below 2^53. */
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

/** The public names of a value's members. Times and amounts lose the unit in their name. */
type ShownName<T> = {
  [K in keyof T & string]: K extends `${infer Name}Ms` ? Name : K extends `${infer Name}E8` ? Name : K;
}[keyof T & string];

type Text<T> = null extends T ? string | null : string;

type Shown<T, N extends string> = {
  readonly [K in N]: `${K}Ms` extends keyof T
    ? Text<T[`${K}Ms`]>
    : `${K}E8` extends keyof T
      ? Text<T[`${K}E8`]>
      : K extends keyof T
        ? T[K]
        : never;
};

/** Returns the members of a value that its schema names, with times as text and amounts in USD. */
export function show<T extends object, N extends ShownName<T>>(members: Readonly<Record<N, object>>, value: T) {
  const values = value as Readonly<Record<string, unknown>>;
  return mapValues(members, (_, name) => {
    if (`${name}Ms` in value) return showTime(values[`${name}Ms`] as number | null);
    if (!(`${name}E8` in value)) return values[name];
    const amountE8 = values[`${name}E8`] as bigint | null;
    return amountE8 === null ? null : formatUsd(amountE8);
  }) as Shown<T, N>;
}

export function showTime(atMs: number): string;
export function showTime(atMs: number | null): string | null;
export function showTime(atMs: number | null): string | null {
  return atMs === null ? null : new Date(atMs).toISOString();
}
