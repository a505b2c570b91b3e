import type { CallField, Declared } from '../calls/call';
import { type Check, compileCheck, type NameUse, type Schema } from '../settings';

/** What a configuration needs to know of a policy: everything but how a call passes it. */
export interface PolicyShape {
  readonly name: string;
  readonly summary: string;
  readonly schema: Schema;
  readonly needs: readonly CallField[];
  readonly provides: readonly CallField[];
  readonly answers?: true;
  readonly boundsItself?: true;
  declares?(settings: unknown): Declared;
}

const checks = new WeakMap<PolicyShape, Check<unknown>>();

/** A policy's settings with their defaults, or what is wrong with them. */
export function checkAction(policy: PolicyShape, action: unknown, names?: NameUse[]): ReturnType<Check<unknown>> {
  const check = checks.get(policy) ?? compileCheck<unknown>(policy.schema);
  checks.set(policy, check);
  return check(action, names);
}
