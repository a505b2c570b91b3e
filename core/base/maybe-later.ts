/** A value, at once or as a promise. */
export type MaybeLater<T> = T | Promise<T>;

/**
 * Continues with a value: now if it is there, otherwise when its promise resolves. Most steps of a call wait for nothing, and a
 * promise for each of them costs more than the step.
 * @throws what `then` throws if the value is there
 */
export function andThen<T, R>(value: MaybeLater<T>, then: (value: T) => MaybeLater<R>): MaybeLater<R> {
  return value instanceof Promise ? value.then(then) : then(value);
}
