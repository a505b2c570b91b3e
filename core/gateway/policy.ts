import type { IncomingMessage, ServerResponse } from 'node:http';
import type { ExtensionContract } from '../base/extension-contract';
import type { MaybeLater } from '../base/maybe-later';
import type { Schema, Settings } from '../base/settings';
import type { Call, CallField, CallFields, Declared } from '../calls/call';
import type { PolicyShape } from '../configuration/pipelines';
import type { Gateway } from './gateway';

/** The call as a step sees it, with the fields that the step declares in `needs`. Fields that later policies add are not visible. */
export type CallWith<N extends CallField> = Pick<Call, Exclude<keyof Call, CallField>> & Readonly<Pick<CallFields, N>>;

/**
 * A function that answers one question about a call. It returns the fields it `provides` to continue, throws to refuse, or answers
 * and returns undefined to end the call. It may return without a promise. Request and response are Node's own.
 */
export type Step<N extends CallField, P extends CallField> = (
  call: CallWith<N>,
  request: IncomingMessage,
  response: ServerResponse,
) => MaybeLater<[P] extends [never] ? void : Pick<CallFields, P> | undefined>;

/** The requirements that each policy is checked against when its package is loaded. */
export const POLICY_CONTRACT: ExtensionContract = {
  kind: 'policy',
  version: 'policy/1',
  functions: ['prepare'],
  optional: ['declares', 'serves'],
};

/** A policy, which answers one question about each call of a pipeline. */
export interface PolicyDefinition<S extends Schema, N extends CallField, P extends CallField> extends PolicyShape {
  readonly contract: 'policy/1';
  readonly schema: S;
  readonly needs: readonly N[];
  readonly provides: readonly P[];
  declares?(settings: Settings<S>): Declared;
  /**
   * Returns a function that says whether a call may be served with these settings, by its demands. Otherwise a rollout of the settings
   * leaves the call out.
   */
  serves?(settings: Settings<S>, gateway: Gateway): (call: CallWith<N>) => boolean;
  /** Runs once per configuration and pipeline, without side effects. Everything that does not depend on the call is computed here. */
  prepare(settings: Settings<S>, gateway: Gateway): Step<N, P>;
}

/** A policy in a pipeline. The TypeScript types of its settings and fields are unknown there. */
export interface Policy extends PolicyShape {
  readonly contract: 'policy/1';
  serves?(settings: unknown, gateway: Gateway): (call: Call) => boolean;
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

function closed(schema: Schema): Schema {
  return { additionalProperties: false, ...schema };
}
