import type { Command } from 'commander';

export interface DayOptions {
  readonly from?: string;
  readonly to?: string;
}

export function withDays(command: Command): Command {
  return command
    .option('--from <day>', 'the first day in UTC, such as 2026-11-01; default: only the last day')
    .option('--to <day>', 'the last day, inclusive (default: the first one, or yesterday)');
}
