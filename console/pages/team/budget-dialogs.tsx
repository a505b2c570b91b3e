import type { Access, WithAccess } from '../../access';
import { ask } from '../../api';
import { exactUsd, plainUsd } from '../../money';
import { decide } from '../../parts/dialog';
import type { FormField, Values } from '../../parts/field';
import type { ApiKey, Budget } from '../../shapes';
import { type Crew, memberOptions, SCOPES, teamOptions, WINDOWS } from './crew';

/** What a budget can limit. */
export interface BudgetOwners extends WithAccess {
  readonly crew: Crew;
  /** The active keys. */
  readonly keys: readonly ApiKey[];
}

const LIMIT: FormField = { name: 'limitUsd', label: 'Limit', kind: 'amount', placeholder: '25', isRequired: true };

function thresholdsField(thresholds: readonly number[]): FormField {
  return {
    name: 'thresholds',
    label: 'Report at',
    hint: 'Percentages of the limit, ascending, with spaces between. Each one reached is an event on the page Alerts.',
    value: thresholds.join(' '),
  };
}

/** Reads percentages that are separated by spaces or commas. The gateway refuses what is no number. */
function percentsOf({ thresholds = '' }: Values): readonly (number | string)[] {
  const words = thresholds.split(/[\s,%]+/).filter((each) => each !== '');
  return words.map((each) => (/^\d+$/.test(each) ? Number(each) : each));
}

const optionsOf = (texts: Readonly<Record<string, string>>) =>
  Object.entries(texts).map(([value, text]) => ({ value, text }));

export function createBudget({ access, crew, keys }: BudgetOwners): void {
  const choice = (scope: Budget['scope'], options: readonly { value: string; text: string }[]): FormField => ({
    name: `${scope}Id`,
    label: SCOPES[scope],
    options,
    isRequired: true,
    when: (values) => values['scope'] === scope,
  });
  const isTag = (values: Values) => values['scope'] === 'tag';
  decide({
    title: 'Create a budget',
    verb: 'Create the budget',
    text: <p class="quiet">A call is refused if a budget does not cover the most that it can cost.</p>,
    fields: [
      { name: 'scope', label: 'Limits', options: optionsOf(SCOPES), value: 'team' },
      choice('team', teamOptions(crew)),
      choice('member', memberOptions(crew)),
      choice(
        'key',
        keys.map(({ id, name, suffix }) => ({ value: id, text: `${name} …${suffix}` })),
      ),
      {
        name: 'tag',
        label: 'Tag',
        hint: 'Its name, as calls send it in X-SVC-Tags, such as customer. Also: session, agent, end_user.',
        isRequired: true,
        when: isTag,
      },
      { name: 'value', label: 'Value', hint: 'Leave empty to give each value this limit.', when: isTag },
      { name: 'window', label: 'Window', options: optionsOf(WINDOWS), value: 'month' },
      LIMIT,
      thresholdsField([50, 80, 100]),
    ],
    act: ({ scope, teamId, memberId, keyId, tag, value, window, limitUsd, ...values }) =>
      ask<Budget>(access.list('budgets'), {
        method: 'POST',
        body: {
          scope,
          scopeId: teamId ?? memberId ?? keyId,
          ...{ tag, value, window, limitUsd },
          thresholds: percentsOf(values),
        },
      }),
    done: 'The budget is created.',
  });
}

export function changeBudget(access: Access, budget: Budget): void {
  const { id, name, window, limitUsd, spentUsd, thresholds } = budget;
  decide({
    title: 'Change the budget',
    verb: 'Save',
    text: (
      <p>
        <strong>{name}</strong>, {WINDOWS[window]}
        {spentUsd !== null && <span class="quiet">: {exactUsd(spentUsd)} spent</span>}
      </p>
    ),
    fields: [{ ...LIMIT, value: plainUsd(limitUsd) }, thresholdsField(thresholds)],
    act: ({ limitUsd: limit, ...values }) =>
      ask<Budget>(access.one('budgets', id), {
        method: 'PATCH',
        body: { limitUsd: limit, thresholds: percentsOf(values) },
      }),
    done: 'The budget is changed.',
  });
}

export function removeBudget(access: Access, { id, name, window }: Budget): void {
  decide({
    title: 'Remove the budget?',
    verb: 'Remove the budget',
    isDestructive: true,
    keep: 'Keep it',
    text: (
      <p>
        The limit of <strong>{name}</strong> {WINDOWS[window]} ends. What is spent continues to be counted.
      </p>
    ),
    act: () => ask(access.one('budgets', id), { method: 'DELETE' }),
    done: 'The budget is removed.',
  });
}
