import { withQuery } from '../client';
import type { Verb } from '../command';
import { type ListOptions, noteMore, withListOptions } from '../list-options';
import { showList } from '../output';
import type { ListShape } from '../shapes';
import { RECORD_COLUMNS, type RecordShape } from './columns';
import { type FilterOptions, filtersOf, withFilters } from './filters';

const listUsage: Verb = (noun, open) => {
  withListOptions(withFilters(noun.command('list')))
    .description('list usage records, newest first')
    .action(async (options: FilterOptions & ListOptions, command) => {
      const { client, output } = open(command);
      const { limit, cursor } = options;
      const path = withQuery('/usage', { ...filtersOf(options), limit, cursor });
      const answer = await client.ask<ListShape<RecordShape>>('GET', path);
      await showList(output, answer, RECORD_COLUMNS);
      noteMore(output, answer);
    });
};

export default listUsage;
