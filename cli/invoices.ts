import type { Command } from 'commander';
import type { Answers } from '../shapes/answers';
import { withQuery } from './client';
import type { Verb } from './command';
import { Failure } from './failure';
import { showTable } from './output';

interface DayOptions {
  readonly from?: string;
  readonly to?: string;
}

function withDays(command: Command): Command {
  return command
    .option('--from <day>', 'the first day in UTC, such as 2026-11-01; default: only the last day')
    .option('--to <day>', 'the last day, inclusive (default: the first one, or yesterday)');
}

type ComparisonShape = Answers['GET /admin/v1/invoices/{name}/comparison'];

export const compareInvoice: Verb = (noun, open) => {
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

type ReportShape = Answers['GET /admin/v1/invoices/{name}'];

export const fetchInvoice: Verb = (noun, open) => {
  withDays(noun.command('fetch <upstream>'))
    .description("fetch the report of an upstream's vendor: usage by day, API key and model; cost by day and workspace")
    .action(async (upstream: string, { from, to }: DayOptions, command) => {
      const { client, output } = open(command);
      const path = withQuery(`/invoices/${encodeURIComponent(upstream)}`, { from, to });
      const report = await client.ask<ReportShape>('GET', path);
      await showTable(output, report, [
        ['day', 'API key', 'model', 'tier', 'meter', 'reported'],
        ...report.usage.flatMap(({ day, apiKeyId, model, tier, counts }) =>
          Object.entries(counts)
            .filter(([, count]) => count !== 0)
            .map(([meter, count]) => [day, apiKeyId, model, tier, meter, count]),
        ),
      ]);
      if (output.json) return;
      await output.write('\n');
      await showTable(output, report, [
        ['day', 'workspace', 'reported USD', 'for'],
        ...report.costs.map(({ day, workspaceId, reportedUsd, item }) => [day, workspaceId, reportedUsd, item]),
      ]);
    });
};
