/** Waits at most `ms` for work, then throws what `whenLate` returns. It ignores a later result of the work. */
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
