import type { Columns } from '../output';

export interface RecordShape {
  readonly createdAt: string;
  readonly requestId: string;
  readonly keyName: string | null;
  readonly model: string | null;
  readonly modelRequested: string | null;
  readonly upstream: string | null;
  readonly status: number;
  readonly errorCode: string | null;
  readonly attempts: number;
  readonly totalTokens: number | null;
  readonly cost: string;
  readonly billing: string;
  readonly sessionId: string | null;
  readonly agentId: string | null;
}

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
