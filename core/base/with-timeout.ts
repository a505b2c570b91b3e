/** Waits at most `ms` milliseconds for the work to finish. After that, throws the error that `whenLate` returns and ignores any later result of the work. */
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
