import type { Answers } from '../../shapes/answers';
import type { Columns } from '../output';

export type RecordShape = Answers['GET /admin/v1/usage']['items'][number];

export const RECORD_COLUMNS: Columns<RecordShape> = {
  time: (record) => record.createdAt,
  request: (record) => record.requestId,
  key: (record) => record.keyName,
  model: (record) => record.model ?? record.modelRequested,
  upstream: (record) => record.upstream,
  status: (record) => record.status,
  tokens: (record) => record.totalTokens,
  'cost USD': (record) => record.cost,
  billing: (record) => record.billing,
};
