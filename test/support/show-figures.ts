/** Prints the costs in a row of a test, with `SHOW_FIGURES=1`. */
export function showFigures(row: string, figures: Readonly<Record<string, number>>): void {
  if (process.env['SHOW_FIGURES'] !== '1') return;
  const texts = Object.entries(figures).map(
    ([name, value]) => `${name} ${value.toFixed(name.endsWith('Usd') ? 6 : 0)}`,
  );
  console.log(`      ${row}: ${texts.join(', ')}`);
}

/** Prints the bill of a call that may end before the vendor has reported its usage. The loss is the vendor's charge above the hold. */
export function showBill(
  row: string,
  bill: { readonly vendorUsd: number; readonly holdUsd: number; readonly chargedUsd: number },
): void {
  const { vendorUsd, holdUsd, chargedUsd } = bill;
  const unchargedUsd = Math.max(0, vendorUsd - chargedUsd);
  showFigures(row, { ...bill, lossUsd: Math.max(0, vendorUsd - holdUsd), unchargedUsd });
}
