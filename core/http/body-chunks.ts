const SMALL_BYTES = 4_096;
const SLAB_BYTES = 65_536;

/**
 * Collects the chunks of a body. It joins small chunks, because each chunk object takes memory of its own: a body that arrives
 * byte by byte would take many times its size.
 */
export class BodyChunks {
  readonly #chunks: Buffer[] = [];
  #slab: Buffer | undefined;
  #used = 0;

  push(chunk: Buffer): void {
    if (chunk.length >= SMALL_BYTES || (this.#chunks.length === 0 && this.#slab === undefined)) {
      this.#endSlab();
      this.#chunks.push(chunk);
      return;
    }
    if (this.#slab !== undefined && this.#used + chunk.length > SLAB_BYTES) this.#endSlab();
    this.#slab ??= Buffer.allocUnsafeSlow(SLAB_BYTES);
    chunk.copy(this.#slab, this.#used);
    this.#used += chunk.length;
  }

  all(): readonly Buffer[] {
    this.#endSlab();
    return this.#chunks;
  }

  #endSlab(): void {
    if (this.#slab === undefined) return;
    this.#chunks.push(this.#slab.subarray(0, this.#used));
    this.#slab = undefined;
    this.#used = 0;
  }
}
