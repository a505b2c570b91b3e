/** Runs the same stories on the embedded default and on real Redis and Postgres. */
export function onBothStores(title: string, stories: (stores: 'embedded' | 'real') => void): void {
  for (const stores of ['embedded', 'real'] as const) {
    describe(`${title} (${stores} stores)`, function () {
      this.timeout(60_000);
      stories(stores);
    });
  }
}
