/** Returns the error with which a promise rejects; fails if it resolves. */
export async function rejection(promise: PromiseLike<unknown>): Promise<Error> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error(`expected a rejection, not ${String(value)}`);
}
