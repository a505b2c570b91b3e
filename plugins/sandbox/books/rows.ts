/**
 * Between rows and the values of the program: `created_at` (a Date) is `createdAtMs` (a number), `reserved_e8` is
 * `reservedE8`; everything else keeps its value under its name in camelCase.
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

/** Also reads a row that came as JSON, where times are texts and amounts numbers below 2^53. */
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
