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
    .option('--account <id>', 'of this account only')
    .option('--from <time>', 'from this time on, such as 2026-11-20 (UTC) or 2026-11-20T08:00:00+01:00')
    .option('--to <time>', 'before this time')
    .option('--key <id>', 'of this key only')
    .option('--model <name>', 'of this model only')
    .option('--upstream <name>', 'answered by this upstream only')
    .option('--status <code>', 'with this HTTP status only')
    .option('--session <id>', 'of this session only, as the client names it')
    .option('--agent <id>', 'of this agent only, as the client names it');
}

export function filtersOf({ account, from, to, key, model, upstream, status, session, agent }: FilterOptions) {
  return { account, from: toTime(from), to: toTime(to), key, model, upstream, status, session, agent };
}
