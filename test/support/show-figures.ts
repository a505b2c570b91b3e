/** Prints what a row of a story costs whom, with `SHOW_FIGURES=1`. */
export function showFigures(row: string, figures: Readonly<Record<string, number>>): void {
  if (process.env['SHOW_FIGURES'] !== '1') return;
  const texts = Object.entries(figures).map(
    ([name, value]) => `${name} ${value.toFixed(name.endsWith('Usd') ? 6 : 0)}`,
  );
  console.log(`      ${row}: ${texts.join(', ')}`);
}
