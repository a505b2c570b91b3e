import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Call, CallField, CallFields, Declared } from '../calls/call';
import type { PolicyShape } from '../configuration/policy-shape';
import type { Contract } from '../contracts';
import type { Schema, Settings } from '../settings';
import type { Gateway } from './gateway';

/** The call as a step sees it: what it declared under `needs` is there; what others leave later is not its business. */
export type CallWith<N extends CallField> = Pick<Call, Exclude<keyof Call, CallField>> & Readonly<Pick<CallFields, N>>;

/**
 * One question about a call. Return the fields you `provide` to go on, throw to refuse, answer to end (a step that has
 * answered returns undefined). A step that waits for nothing need not be async. Request and response are Node's own.
 */
export type Step<N extends CallField, P extends CallField> = (
  call: CallWith<N>,
  request: IncomingMessage,
  response: ServerResponse,
) => MaybeLater<[P] extends [never] ? void : Pick<CallFields, P> | undefined>;

/** At once or by a promise. */
export type MaybeLater<T> = T | Promise<T>;

/** What is checked of each policy when its package is loaded. */
export const POLICY_CONTRACT: Contract = {
  kind: 'policy',
  versions: ['policy/1'],
  functions: ['prepare'],
  optional: ['declares'],
};

/** One question about each call of a pipeline. */
export interface PolicyDefinition<S extends Schema, N extends CallField, P extends CallField> extends PolicyShape {
  readonly contract: 'policy/1';
  readonly schema: S;
  readonly needs: readonly N[];
  readonly provides: readonly P[];
  declares?(settings: Settings<S>): Declared;
  /** Runs once per configuration and pipeline; everything that can be built ahead is built here. No side effects. */
  prepare(settings: Settings<S>, gateway: Gateway): Step<N, P>;
}

/** A policy with its types forgotten, as pipelines hold it. */
export interface Policy extends PolicyShape {
  readonly contract: 'policy/1';
  prepare(settings: unknown, gateway: Gateway): AnyStep;
}

export type AnyStep = (
  call: Call,
  request: IncomingMessage,
  response: ServerResponse,
) => MaybeLater<Partial<CallFields> | undefined>;

/** Helps TypeScript check a policy: its settings, what it needs, and what it provides. */
export function definePolicy<
  const S extends Schema,
  const N extends CallField = never,
  const P extends CallField = never,
>(definition: PolicyDefinition<S, N, P>): Policy {
  return { ...definition, schema: closed(definition.schema) } as unknown as Policy;
}

/** An action's schema never lets unknown settings pass. */
function closed(schema: Schema): Schema {
  return { additionalProperties: false, ...schema };
}
