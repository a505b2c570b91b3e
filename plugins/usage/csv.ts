/** CSV as in RFC 4180, safe to open in a spreadsheet. */

export type Cell = string | number | boolean | object | null;

export function csvLine(cells: readonly Cell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

const DECIMAL = /^-?\d+(\.\d+)?$/;
const FORMULA = /^[=+\-@\t\r\n]/;

/**
 * Writes a cell: numbers stay numbers, and objects become JSON. Text that a spreadsheet would run as a formula gets a leading
 * apostrophe, which marks it as text.
 */
function csvCell(cell: Cell): string {
  if (cell === null) return '';
  if (typeof cell === 'object') return csvCell(JSON.stringify(cell));
  if (typeof cell !== 'string' || DECIMAL.test(cell)) return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
