import type { Command } from 'commander';
import { UsageError } from '../failure';

/** Limits of a key beside the one in all, as options; "none" removes one. */
export interface LimitOptions {
  readonly daily?: string;
  readonly monthly?: string;
  readonly callsPerMinute?: string;
  readonly tokensPerMinute?: string;
}

export function limitOptions(verb: Command): Command {
  return verb
    .option('--daily <usd>', 'the most it may spend in a day, UTC')
    .option('--monthly <usd>', 'the most it may spend in a month, UTC')
    .option('--calls-per-minute <count>', 'the most calls it may make in a minute')
    .option('--tokens-per-minute <count>', 'the most tokens it may ask for in a minute');
}

export function limitFields({ daily, monthly, callsPerMinute, tokensPerMinute }: LimitOptions): object {
  const amount = (text: string) => (text === 'none' ? null : text);
  return {
    ...(daily === undefined ? {} : { dailyLimit: amount(daily) }),
    ...(monthly === undefined ? {} : { monthlyLimit: amount(monthly) }),
    ...(callsPerMinute === undefined ? {} : { callsPerMinute: count('--calls-per-minute', callsPerMinute) }),
    ...(tokensPerMinute === undefined ? {} : { tokensPerMinute: count('--tokens-per-minute', tokensPerMinute) }),
  };
}

function count(option: string, text: string): number | null {
  if (text === 'none') return null;
  if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`${option}: expected a whole number from 1 up, or "none".`);
  return Number(text);
}
