import type { ShownRecord, toRecordOfAccount } from './record';

/** The columns of the CSV: the record's fields in the order of contract section 6. */
export const RECORD_COLUMNS = [
  'requestId',
  'createdAt',
  'keyId',
  'keyName',
  'protocol',
  'path',
  'strategy',
  'modelRequested',
  'model',
  'upstream',
  'attempts',
  'fallback',
  'stream',
  'status',
  'source',
  'errorCode',
  'inputTokens',
  'outputTokens',
  'totalTokens',
  'cacheCreationTokens',
  'cacheReadTokens',
  'cost',
  'billing',
  'responseTimeMs',
  'firstTokenMs',
  'configRevision',
  'calls',
] as const satisfies readonly (keyof ShownRecord)[];

/** What stands behind them for operators. */
export const OPERATOR_COLUMNS = [
  'accountId',
  'rollout',
  'rolloutStage',
  'rolloutArm',
] as const satisfies readonly Exclude<keyof ReturnType<typeof toRecordOfAccount>, keyof ShownRecord>[];
