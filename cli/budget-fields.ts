import { Option } from 'commander';
import { LIMIT_WINDOWS } from '../core/ledger/scopes';
import { UsageError } from './failure';
import { someOf } from './key-fields';

/** The scopes that a budget may have. */
const SCOPES = ['account', 'team', 'member', 'key', 'tag'] as const;

const AMOUNT = '--limit <usd>';
const THRESHOLDS = new Option('--thresholds <percents...>', 'whole percents of the limit; default: 50 80 100');

export const NEW_BUDGET: readonly Option[] = [
  new Option('--scope <scope>', 'whose spending it limits').choices(SCOPES).makeOptionMandatory(),
  new Option('--id <id>', 'the id of the team, member or key; an account or a tag needs none'),
  new Option('--tag <name>', 'the name of the tag, such as customer: each of its values may spend the limit'),
  new Option('--value <value>', 'only this value of the tag; needed for the window total'),
  new Option('--window <window>', 'the time in which it counts: UTC, weeks from Monday, or in all')
    .choices(LIMIT_WINDOWS)
    .makeOptionMandatory(),
  new Option(AMOUNT, 'the most that the scope may spend in the window').makeOptionMandatory(),
  THRESHOLDS,
];

export const BUDGET_CHANGES: readonly Option[] = [new Option(AMOUNT, 'its new limit'), THRESHOLDS];

export const BUDGETS_OF_SCOPE = new Option('--scope <scope>', 'only those of this kind of scope').choices(SCOPES);

interface BudgetOptions {
  readonly scope?: string;
  readonly id?: string;
  readonly tag?: string;
  readonly value?: string;
  readonly window?: string;
  readonly limit?: string;
  readonly thresholds?: readonly string[];
}

/** Returns the request body that creates a budget. */
export function newBudget({ scope, id, tag, value, window, limit, thresholds }: BudgetOptions): object {
  return { scope, scopeId: id, tag, value, window, limitUsd: limit, thresholds: toPercents(thresholds) };
}

/** Returns the request body that changes a budget. @throws UsageError if no option changes anything */
export function budgetChanges({ limit, thresholds }: BudgetOptions): object {
  return someOf({ limitUsd: limit, thresholds: toPercents(thresholds) }, 'Give --limit or --thresholds.');
}

function toPercents(texts: readonly string[] | undefined): readonly number[] | undefined {
  const wrong = texts?.find((text) => !/^[1-9]\d{0,8}$/.test(text));
  if (wrong !== undefined) throw new UsageError(`--thresholds: expected whole percents such as 50 80, not "${wrong}".`);
  return texts?.map(Number);
}
