import { Option } from 'commander';
import { withQuery } from './client';
import type { Verb } from './command';
import { Failure } from './failure';
import { FROM, TO, toTime } from './key-fields';

export const FILTERS: readonly Option[] = [
  new Option('--account <id>', 'only of this account'),
  ...[FROM, TO],
  new Option('--key <id>', 'only of this key'),
  new Option('--model <name>', 'only of this model'),
  new Option('--upstream <name>', 'only answered by this upstream'),
  new Option('--status <code>', 'only with this HTTP status'),
  new Option('--session <id>', 'only of this session, as the client names it'),
  new Option('--agent <id>', 'only of this agent, as the client names it'),
];

/** Returns the query of a usage request from the filters in the options. */
export function filtersOf({
  from,
  to,
  ...filters
}: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return { ...filters, from: toTime(from), to: toTime(to) } as Readonly<Record<string, string>>;
}

export const exportUsage: Verb = (noun, open) => {
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
