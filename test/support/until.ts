/** Waits for a condition, never for a time. Fails with the last error or value after `withinMs`. */
export async function until<T>(
  what: string,
  condition: () => T | Promise<T>,
  withinMs = 10_000,
): Promise<NonNullable<T>> {
  const deadline = Date.now() + withinMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value !== undefined && value !== null && value !== false) return value as NonNullable<T>;
      last = value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`, { cause: last });
    await new Promise((wake) => setTimeout(wake, 10));
  }
}
