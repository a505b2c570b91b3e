import { inTime } from '../in-time';
import type { Policy } from './policy';

/** A policy has not finished its step in time. */
class StepTimeout extends Error {
  override readonly name = 'StepTimeout';
}

/**
 * Waits for a step at most this long, so that a policy that never resolves cannot keep a call, its connection and its hold for
 * ever. What the step does afterwards is ignored. A policy that bounds its own waiting is waited for.
 *
 * @throws StepTimeout that names the policy.
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
