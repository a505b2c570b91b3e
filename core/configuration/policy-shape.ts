import type { CallField, Declared } from '../calls/call';
import { type Check, compileCheck, type NameUse, type Schema } from '../settings';

/** The parts of a policy that a configuration needs: all but its handling of calls. */
export interface PolicyShape {
  /** The policy's folder under `policies/` and its name in gateway.config.yml. */
  readonly name: string;
  /** The question that the policy answers, for documents and the configuration schema. */
  readonly summary: string;
  /** JSON Schema of the policy's `action`; unknown settings are refused. */
  readonly schema: Schema;
  readonly needs: readonly CallField[];
  readonly provides: readonly CallField[];
  /** Whether the policy always answers or throws. A pipeline must end with such a policy. */
  readonly answers?: true;
  /** Whether the policy itself limits how long it waits for the client, the ledger or an upstream. `stepTimeout` then does not apply to it. */
  readonly boundsItself?: true;
  /** Returns what the steps before the policy need to know of it. */
  declares?(settings: unknown): Declared;
}

const checks = new WeakMap<PolicyShape, Check<unknown>>();

/** Returns a policy's settings with their defaults, or their problems. */
export function checkAction(policy: PolicyShape, action: unknown, names?: NameUse[]): ReturnType<Check<unknown>> {
  const check = checks.get(policy) ?? compileCheck<unknown>(policy.schema);
  checks.set(policy, check);
  return check(action, names);
}
