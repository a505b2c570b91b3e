/** `tollgate/usage`: the usage counts that an adapter reports. */
export {
  type Counts,
  countsOf,
  INPUT_METERS,
  type Meter,
  mergeUsage,
  OUTPUT_METERS,
  outputTokens,
  type Pass,
  tokensOf,
  totalInputTokens,
  UNKNOWN_USAGE,
  type Usage,
  usageOf,
} from '../core/catalog/usage';
