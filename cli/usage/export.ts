import { withQuery } from '../client';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { FILTERS, filtersOf } from './filters';

const exportUsage: Verb = (noun, open) => {
  const command = noun
    .command('export')
    .description('write usage records as CSV, for example: usage export --account <id> > usage.csv');
  for (const filter of FILTERS) command.addOption(filter);
  command.action(async (options: Readonly<Record<string, unknown>>, self) => {
    const { client, output } = open(self);
    const body = await client.open(withQuery('/usage.csv', filtersOf(options)));
    try {
      for await (const chunk of body) await output.write(chunk);
    } catch (cause) {
      throw new Failure('The export was interrupted and is incomplete. Run it again.', { cause });
    }
  });
};

export default exportUsage;
