/** `tollgate/policy`: the types and functions for writing a policy of a pipeline. */

export type { MaybeLater } from '../core/base/maybe-later';
export type { Call, CallField, CallFields, Declared } from '../core/calls/call';
export type { Gateway } from '../core/gateway/gateway';
export {
  type CallWith,
  definePolicy,
  type Policy,
  type PolicyDefinition,
  type Step,
} from '../core/gateway/policy';
