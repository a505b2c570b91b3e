/** Waits for work at most this long, then throws what `whenLate` makes. A later result of the work is ignored. */
export function withTimeout<T>(work: PromiseLike<T>, ms: number, whenLate: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(whenLate()), ms);
    work.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
