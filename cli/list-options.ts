import type { Command } from 'commander';
import type { Output } from './output';
import type { ListShape } from './shapes';

export interface ListOptions {
  readonly limit?: string;
  readonly cursor?: string;
}

export function withListOptions(command: Command): Command {
  return command
    .option('--limit <count>', 'at most so many, up to 1000 (default 100)')
    .option('--cursor <cursor>', 'go on where the list before ended');
}

/** Tells people that a list goes on; programs read nextCursor. */
export function noteMore(output: Output, { nextCursor }: ListShape<unknown>): void {
  if (!output.json && nextCursor !== null) output.note(`There is more: --cursor ${nextCursor}`);
}
