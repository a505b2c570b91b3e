import { type Access, mayManage } from '../../access';
import { withQuery } from '../../api';
import { leftOf } from '../../money';
import { Button } from '../../parts/button';
import { Icon } from '../../parts/icon';
import { Pager, usePages } from '../../parts/pager';
import { Spent } from '../../parts/spent';
import { actionsColumn, type Column, TablePanel } from '../../parts/table';
import { Choice } from '../../parts/toolbar';
import { Amount, When } from '../../parts/values';
import { useResource } from '../../resource';
import { changeQuery, place } from '../../router';
import type { Budget, List } from '../../shapes';
import { type BudgetOwners, changeBudget, createBudget, removeBudget } from './budget-dialogs';
import { SCOPES, WINDOWS } from './crew';

const PAGE_ROWS = 50;
/** The interval of reading budgets again, in ms, because their spending grows while the page is open. */
const EVERY_MS = 5_000;

export function BudgetsPanel(props: BudgetOwners) {
  const { access } = props;
  const scope = (Object.keys(SCOPES) as Budget['scope'][]).find((each) => each === place.value.query.get('scope'));
  const pages = usePages(withQuery(access.list('budgets'), { scope, limit: PAGE_ROWS }));
  const budgets = useResource<List<Budget>>(pages.path, { everyMs: EVERY_MS });
  const tools = (
    <>
      <Choice
        label="Show"
        value={scope ?? ''}
        options={[{ value: '', text: 'All' }, ...Object.entries(SCOPES).map(([value, text]) => ({ value, text }))]}
        onChange={(value) => changeQuery({ scope: value }, { replace: true })}
      />
      {mayManage(access) && (
        <Button onClick={() => createBudget(props)}>
          <Icon name="plus" /> Create a budget
        </Button>
      )}
    </>
  );
  return (
    <TablePanel
      title="Budgets"
      actions={tools}
      caption="Budgets, newest first"
      look="keys"
      columns={mayManage(access) ? [...COLUMNS, actionsOf(access)] : COLUMNS}
      list={budgets}
      keyOf={({ id }) => id}
      none={
        scope === undefined
          ? 'No budget yet. A budget limits what the account, a team, a member, a key or a tag spends.'
          : 'No such budget.'
      }
    >
      <Pager {...pages.pagerOf(budgets.data)} />
    </TablePanel>
  );
}

/** The name of what a budget limits, with its kind and window below. */
export const BUDGET_NAME: Column<Budget> = {
  title: 'Budget',
  cell: ({ name, scope, window, tag, value }) => (
    <>
      <span class="key-name cut">{tag !== null && value === null ? `each ${name}` : name}</span>
      <span class="sub faint small cut">
        {SCOPES[scope]}, {WINDOWS[window]}
      </span>
    </>
  ),
};

export const BUDGET_SPENT: Column<Budget> = {
  title: 'Spent of limit',
  cell: ({ tag, value, spentUsd, heldUsd, limitUsd }) =>
    tag !== null && value === null ? (
      <span class="figure">
        <Amount usd={limitUsd} /> <span class="faint small">for each value</span>
      </span>
    ) : (
      <Spent spentUsd={spentUsd} heldUsd={heldUsd} limitUsd={limitUsd} />
    ),
};

const COLUMNS: readonly Column<Budget>[] = [
  BUDGET_NAME,
  BUDGET_SPENT,
  { title: 'Held', isNumber: true, room: 'from-m', cell: ({ heldUsd }) => <Amount usd={heldUsd} /> },
  { title: 'Left', isNumber: true, cell: (budget) => <Amount usd={leftIn(budget)} /> },
  {
    title: 'Resets',
    look: 'quiet small',
    cell: ({ resetsAt }) => <When at={resetsAt} none="Never" />,
  },
];

function leftIn({ limitUsd, spentUsd, heldUsd }: Budget): string | null {
  return spentUsd === null || heldUsd === null ? null : leftOf(limitUsd, [spentUsd, heldUsd]);
}

const actionsOf = (access: Access) =>
  actionsColumn<Budget>((budget) => (
    <>
      <Button look="slight" of={`the budget of ${budget.name}`} onClick={() => changeBudget(access, budget)}>
        Change
      </Button>
      <Button look="slight danger" of={`the budget of ${budget.name}`} onClick={() => removeBudget(access, budget)}>
        Remove
      </Button>
    </>
  ));
