import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { type Columns, showList } from '../output';
import type { ListShape } from '../shapes';
import { type FilterOptions, filtersOf, withFilters } from './filters';

interface RecordShape {
  readonly createdAt: string;
  readonly requestId: string;
  readonly keyName: string | null;
  readonly model: string | null;
  readonly modelRequested: string | null;
  readonly upstream: string | null;
  readonly status: number;
  readonly totalTokens: number | null;
  readonly cost: string;
  readonly billing: string;
}

const COLUMNS: Columns<RecordShape> = {
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

const listUsage: Verb = (noun, open) => {
  withListOptions(withFilters(noun.command('list')))
    .description('list usage records, newest first')
    .action(async (options: FilterOptions & ListOptions, command) => {
      const { client, output } = open(command);
      const { limit, cursor } = options;
      const path = withQuery('/usage', { ...filtersOf(options), limit, cursor });
      const answer = await client.ask<ListShape<RecordShape>>('GET', path);
      await showList(output, answer, COLUMNS);
      noteMore(output, answer);
    });
};

export default listUsage;
