/** Returns a table in which all cells of a column have the same width; the first row is its head. */
export function tableOf(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const [head, ...rest] = rows.map((row) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(' | ')} |\n`);
  return [head, `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |\n`, ...rest].join('');
}
