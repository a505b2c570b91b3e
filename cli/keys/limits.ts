import { type Command, Option } from 'commander';
import type { ShownKeyLimits } from '../../core/ledger/limit-fields';
import { UsageError } from '../failure';

/** The option for each limit of a key except its overall limit. "none" removes a limit. */
const OPTIONS: Readonly<Record<Exclude<keyof ShownKeyLimits, 'balanceLimit'>, Option>> = {
  dailyLimit: new Option('--daily <usd>', 'the most it may spend in a day, UTC'),
  monthlyLimit: new Option('--monthly <usd>', 'the most it may spend in a month, UTC'),
  callsPerMinute: new Option('--calls-per-minute <count>', 'the most calls it may make in a minute'),
  tokensPerMinute: new Option('--tokens-per-minute <count>', 'the most tokens it may ask for in a minute'),
};

export function limitOptions(verb: Command): Command {
  return Object.values(OPTIONS).reduce((all, option) => all.addOption(option), verb);
}

/** Returns the given limits as members of a request's body. */
export function limitFields(given: Readonly<Record<string, unknown>>): object {
  const wanted = Object.entries(OPTIONS).flatMap(([name, option]) => {
    const text = given[option.attributeName()];
    return typeof text === 'string' ? [[name, read(option, text)]] : [];
  });
  return Object.fromEntries(wanted);
}

function read({ long, flags }: Option, text: string): string | number | null {
  if (text === 'none') return null;
  if (!flags.endsWith('<count>')) return text;
  if (!/^[1-9]\d*$/.test(text)) throw new UsageError(`${long}: expected a whole number from 1 up, or "none".`);
  return Number(text);
}
