/** Waits for work at most this long, then throws what `whenLate` makes. What the work does afterwards is ignored. */
export async function inTime<T>(work: PromiseLike<T>, ms: number, whenLate: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(whenLate()), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
