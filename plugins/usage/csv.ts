/** RFC 4180, and safe to open in a spreadsheet. */

export type Cell = string | number | boolean | object | null;

export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

const DECIMAL = /^-?\d+(\.\d+)?$/;
const FORMULA = /^[=+\-@\t\r\n]/;

/** Numbers stay numbers, and what has parts is JSON. Text that a spreadsheet would run as a formula is led by an apostrophe, which it shows as text. */
function csvCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'object') return csvCell(JSON.stringify(cell));
  if (typeof cell !== 'string' || DECIMAL.test(cell)) return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
