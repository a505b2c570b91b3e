import type { Command } from 'commander';

export interface DayOptions {
  readonly from?: string;
  readonly to?: string;
}

export function withDays(command: Command): Command {
  return command
    .option('--from <day>', 'the first day of UTC, such as 2026-11-01; without it the last one alone')
    .option('--to <day>', 'the last day, included (the first one, or yesterday)');
}
