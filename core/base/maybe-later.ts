/** A value that is available at once or as a promise. */
export type MaybeLater<T> = T | Promise<T>;

/**
 * Passes a value to `then`: now if it is available, otherwise when its promise resolves. Most steps of a call wait for nothing, and a
 * promise for each step would cost more than the step.
 * @throws what `then` throws if the value is available
 */
export function andThen<T, R>(value: MaybeLater<T>, then: (value: T) => MaybeLater<R>): MaybeLater<R> {
  return value instanceof Promise ? value.then(then) : then(value);
}
