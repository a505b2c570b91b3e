import type { Answers } from '../../shapes/answers';
import { withQuery } from '../client';
import type { Verb } from '../command';
import { Failure } from '../failure';
import { showTable } from '../output';
import { type DayOptions, withDays } from './days';

type ComparisonShape = Answers['GET /admin/v1/invoices/{name}/comparison'];

const compareInvoice: Verb = (noun, open) => {
  withDays(noun.command('compare <upstream>'))
    .description(
      "compare the report of an upstream's vendor with the usage records; exit status 1 if a difference is above reporting.alarmAboveUsd",
    )
    .action(async (upstream: string, { from, to }: DayOptions, command) => {
      const { client, output } = open(command);
      const path = withQuery(`/invoices/${encodeURIComponent(upstream)}/comparison`, { from, to });
      const comparison = await client.ask<ComparisonShape>('GET', path);
      const [first, ...others] = tablesOf(comparison);
      await showTable(output, comparison, first ?? []);
      for (const rows of output.json ? [] : others) {
        await output.write('\n');
        await showTable(output, comparison, rows);
      }
      if (comparison.counts.length === 0) output.note('No count differs.');
      if (comparison.isAlarm)
        throw new Failure(
          'A difference is above reporting.alarmAboveUsd. See docs/operating.md for what to do about each cause.',
        );
    });
};

type Rows = readonly (readonly (string | number | null)[])[];

function tablesOf({ counts, costs, causes }: ComparisonShape): readonly Rows[] {
  const cost: Rows = [
    ['day', 'reported USD', 'recorded USD', 'difference USD', 'of counts', 'of prices', 'charged USD', 'alarm'],
    ...costs.map((each) => [
      ...[each.day, each.reportedUsd, each.recordedUsd, each.differenceUsd],
      ...[each.ofCountsUsd, each.ofPricesUsd, each.chargedUsd, each.isAlarm ? 'yes' : 'no'],
    ]),
  ];
  const differing: Rows = [
    ['day', 'model', 'meter', 'reported', 'recorded', 'difference', 'difference USD', 'cause'],
    ...counts.map((each) => [
      ...[each.day, each.model, each.meter, each.reported, each.recorded],
      ...[each.difference, each.differenceUsd, each.causes.map(shownCause).join(' or ')],
    ]),
  ];
  const byCause: Rows = [
    ['day', 'cause', 'attempts', 'uncertain', 'recorded USD'],
    ...causes.map(({ day, cause, attempts, uncertain, recordedUsd }) => [day, cause, attempts, uncertain, recordedUsd]),
  ];
  return counts.length === 0 ? [cost, byCause] : [cost, differing, byCause];
}

function shownCause({ cause, attempts }: ComparisonShape['counts'][number]['causes'][number]): string {
  return attempts === 0 ? cause : `${cause} (${attempts})`;
}

export default compareInvoice;
