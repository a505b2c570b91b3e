const DOWN_AFTER_FAILURES = 3;
const DOWN_FOR_MS = 30_000;

/** Records whether suppliers answer this process. A supplier that fails repeatedly gets no new instances for a while. */
export class SupplierHealth {
  readonly #silent = new Map<string, { failures: number; lastAtMs: number }>();

  answered(supplier: string): void {
    this.#silent.delete(supplier);
  }

  failed(supplier: string, nowMs = performance.now()): void {
    const failures = (this.#silent.get(supplier)?.failures ?? 0) + 1;
    this.#silent.set(supplier, { failures, lastAtMs: nowMs });
  }

  isDown(supplier: string, nowMs = performance.now()): boolean {
    const silent = this.#silent.get(supplier);
    return silent !== undefined && silent.failures >= DOWN_AFTER_FAILURES && nowMs < silent.lastAtMs + DOWN_FOR_MS;
  }
}
