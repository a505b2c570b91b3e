import type { Command } from 'commander';
import type { Output } from './output';

export function withListOptions(command: Command): Command {
  return command
    .option('--limit <count>', 'how many to list, up to 1000 (default 100)')
    .option('--cursor <cursor>', 'continue after the end of the previous list');
}

/** Notes for people that a list has more pages. Programs read nextCursor. */
export function noteMore(output: Output, { nextCursor }: { readonly nextCursor: string | null }): void {
  if (!output.json && nextCursor !== null) output.note(`More entries: --cursor ${nextCursor}`);
}
