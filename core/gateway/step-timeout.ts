import { inTime } from '../in-time';
import type { Policy } from './policy';

/** The error of a policy that has not finished its step in time. */
class StepTimeout extends Error {
  override readonly name = 'StepTimeout';
}

/**
 * Waits for a step at most this long. Without a limit, a policy that never resolves would keep a call, its connection and its hold
 * for ever. A late result is ignored. A policy that bounds its own waiting has no such limit.
 * @throws StepTimeout with the name of the policy
 */
export function stepInTime<T>(
  step: PromiseLike<T>,
  { name, boundsItself }: Pick<Policy, 'name' | 'boundsItself'>,
  timeoutMs: number,
): PromiseLike<T> {
  if (boundsItself === true) return step;
  const late = () =>
    new StepTimeout(`the policy "${name}" has not finished its step within ${timeoutMs} ms (stepTimeout)`);
  return inTime(step, timeoutMs, late);
}
