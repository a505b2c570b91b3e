import { Option } from 'commander';
import type { Answers } from '../shapes/answers';
import { withQuery } from './client';
import { REPLAYED } from './columns';
import type { Verb } from './command';
import { Failure } from './failure';
import { FROM, TO, toTime } from './key-fields';
import { type Columns, same, showList, showOne } from './output';

export const FILTERS: readonly Option[] = [
  new Option('--account <id>', 'only of this account'),
  ...[FROM, TO],
  new Option('--key <id>', 'only of this key'),
  new Option('--model <name>', 'only of this model'),
  new Option('--upstream <name>', 'only answered by this upstream'),
  new Option('--region <regions>', 'only answered where the configuration declared these regions, such as eu or eu,us'),
  new Option('--status <code>', 'only with this HTTP status'),
  new Option('--session <id>', 'only of this session, as the client names it'),
  new Option('--agent <id>', 'only of this agent, as the client names it'),
  new Option('--team <id>', 'only of keys that were in this team'),
  new Option('--member <id>', 'only of keys that were of this member'),
  new Option('--end-user <id>', 'only for this end user, as the client names it'),
  new Option('--tags <tags>', 'only with these tags, such as customer=4711,project=a'),
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

/** Shows tags as a client sends them. */
export function showTags(tags: Readonly<Record<string, unknown>>): string {
  return Object.entries(tags)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}

type Totals = Answers['GET /admin/v1/usage/totals'];

const TOTALS: Columns<Totals> = {
  ...same('calls', 'failed'),
  'cost USD': ({ costUsd }) => costUsd,
  'input tokens': ({ inputTokens }) => inputTokens,
  'output tokens': ({ outputTokens }) => outputTokens,
  'total tokens': ({ totalTokens }) => totalTokens,
};

const GROUP: Columns<NonNullable<Totals['groups']>[number]> = {
  ...same('id', 'name', 'calls'),
  'cost USD': ({ costUsd }) => costUsd,
};

export const usageTotals: Verb = (noun, open) => {
  const command = noun
    .command('totals')
    .description('add up usage records, for example by customer: usage totals --account <id> --by tag:customer');
  for (const filter of FILTERS) command.addOption(filter);
  command.option(
    '--by <what>',
    'model, key, upstream, region, team, member, session, agent, endUser, or a tag as tag:NAME',
  );
  command.action(async (options: Readonly<Record<string, unknown>>, self) => {
    const { client, output } = open(self);
    const totals = await client.ask<Totals>('GET', withQuery('/usage/totals', filtersOf(options)));
    if (totals.groups === undefined || output.json) return showOne(output, totals, TOTALS);
    return showList(output, { items: totals.groups }, GROUP);
  });
};

type Report = Answers['GET /admin/v1/usage/report'];

const OUTSIDE: Columns<Report['outside'][number]> = {
  request: ({ requestId }) => requestId,
  ...same('upstream', 'fact', 'has'),
};

export const usageReport: Verb = (noun, open) => {
  noun
    .command('report')
    .description('whether every attempt at an upstream in a period met demands; exit status 1 if not')
    .requiredOption('--account <id>', 'of this account')
    .requiredOption('--where <demands>', 'what must be true, such as "region=eu; retention=none; trains=no"')
    .addOption(FROM)
    .addOption(TO)
    .action(async (options: Readonly<Record<string, unknown>>, self) => {
      const { client, output } = open(self);
      const report = await client.ask<Report>('GET', withQuery('/usage/report', filtersOf(options)));
      const { holds, calls, attempts, unrecorded, unrecordedCalls = [], outside } = report;
      if (output.json) await showOne(output, report, {});
      else if (outside.length > 0) await showList(output, { items: outside }, OUTSIDE);
      output.note(`${calls} calls, ${attempts} attempts, ${unrecorded} calls without a recorded attempt.`);
      for (const requestId of unrecordedCalls) output.note(`No attempt of ${requestId} is recorded.`);
      if (!holds) throw new Failure(`"${options['where']}" does not hold for these calls.`);
    });
};

type ReplayShape = Answers['GET /admin/v1/usage/replay'];

export const replayUsage: Verb = (noun, open) => {
  noun
    .command('replay')
    .description('show what the calls of a period would have cost with the prices of a proposal')
    .requiredOption('--from <time>', 'the beginning of the period, inclusive')
    .addOption(TO)
    .requiredOption('--prices <proposal>', 'the id of the proposal')
    .option('--account <id>', 'only of this account')
    .action(async (options: Readonly<Record<string, string>>, self) => {
      const { client, output } = open(self);
      const { from, to, prices, account } = options;
      const query = { from: toTime(from), to: toTime(to), proposal: prices, account };
      const replayed = await client.ask<ReplayShape>('GET', withQuery('/usage/replay', query));
      await showList(output, replayed, REPLAYED);
      const { calls, costUsd, replayedUsd } = replayed;
      output.note(`${calls} calls cost USD ${costUsd}, and would have cost USD ${replayedUsd}.`);
    });
};
