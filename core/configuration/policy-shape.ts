import type { CallField, Declared } from '../calls/call';
import { type Check, compileCheck, type NameUse, type Schema } from '../settings';

/** What a configuration needs to know of a policy: everything but how a call passes it. */
export interface PolicyShape {
  /** Its folder under `policies/` and its name in gateway.config.yml. */
  readonly name: string;
  /** The question it answers, for documents and the configuration schema. */
  readonly summary: string;
  /** JSON Schema of its `action`; unknown settings are refused. */
  readonly schema: Schema;
  readonly needs: readonly CallField[];
  readonly provides: readonly CallField[];
  /** It always answers or throws: a pipeline must end with such a policy. */
  readonly answers?: true;
  /** It waits for the client, the ledger or an upstream and bounds that itself: `stepTimeout` does not hold for it. */
  readonly boundsItself?: true;
  /** What the steps before it should know of it. */
  declares?(settings: unknown): Declared;
}

const checks = new WeakMap<PolicyShape, Check<unknown>>();

/** A policy's settings with their defaults, or what is wrong with them. */
export function checkAction(policy: PolicyShape, action: unknown, names?: NameUse[]): ReturnType<Check<unknown>> {
  const check = checks.get(policy) ?? compileCheck<unknown>(policy.schema);
  checks.set(policy, check);
  return check(action, names);
}
