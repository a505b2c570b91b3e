import type { Command } from 'commander';
import { toTime } from '../time';

export interface FilterOptions {
  readonly account?: string;
  readonly from?: string;
  readonly to?: string;
  readonly key?: string;
  readonly model?: string;
  readonly upstream?: string;
  readonly status?: string;
  readonly session?: string;
  readonly agent?: string;
}

export function withFilters(command: Command): Command {
  return command
    .option('--account <id>', 'only of this account')
    .option('--from <time>', 'only from this time on, such as 2026-11-20 (UTC) or 2026-11-20T08:00:00+01:00')
    .option('--to <time>', 'only before this time')
    .option('--key <id>', 'only of this key')
    .option('--model <name>', 'only of this model')
    .option('--upstream <name>', 'only answered by this upstream')
    .option('--status <code>', 'only with this HTTP status')
    .option('--session <id>', 'only of this session, as the client names it')
    .option('--agent <id>', 'only of this agent, as the client names it');
}

export function filtersOf({ account, from, to, key, model, upstream, status, session, agent }: FilterOptions) {
  return { account, from: toTime(from), to: toTime(to), key, model, upstream, status, session, agent };
}
