import { withQuery } from '../client';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { type FilterOptions, filtersOf, withFilters } from './filters';

const exportUsage: Verb = (noun, open) => {
  withFilters(noun.command('export'))
    .description('write usage records as CSV, for example: usage export --account <id> > usage.csv')
    .action(async (options: FilterOptions, command) => {
      const { client, output } = open(command);
      const body = await client.open(withQuery('/usage.csv', filtersOf(options)));
      try {
        for await (const chunk of body) await output.write(chunk);
      } catch (cause) {
        throw new Failure('The export was interrupted and is incomplete. Run it again.', { cause });
      }
    });
};

export default exportUsage;
