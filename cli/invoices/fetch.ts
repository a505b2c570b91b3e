import type { Answers } from '../../shapes/answers';
import { withQuery } from '../client';
import type { Verb } from '../command';
import { showTable } from '../output';
import { type DayOptions, withDays } from './days';

type ReportShape = Answers['GET /admin/v1/invoices/{name}'];

const fetchInvoice: Verb = (noun, open) => {
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

export default fetchInvoice;
