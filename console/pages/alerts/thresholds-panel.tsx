import { mayManage, type WithAccess } from '../../access';
import { ask, withQuery } from '../../api';
import { plainUsd, shortUsd } from '../../money';
import { Button } from '../../parts/button';
import { decide } from '../../parts/dialog';
import { Pager, usePages } from '../../parts/pager';
import { Bone } from '../../parts/states';
import { actionsColumn, type Column, TablePanel } from '../../parts/table';
import { useResource } from '../../resource';
import type { AccountSettings, Budget, List } from '../../shapes';
import { changeBudget } from '../team/budget-dialogs';
import { BUDGET_NAME, BUDGET_SPENT } from '../team/budgets-panel';

const PAGE_ROWS = 20;
const EVERY_MS = 5_000;

/** What raises an event: a low balance, and the thresholds of budgets. */
export function ThresholdsPanel({ access }: WithAccess) {
  const pages = usePages(withQuery(access.list('budgets'), { limit: PAGE_ROWS }));
  const budgets = useResource<List<Budget>>(pages.path, { everyMs: EVERY_MS });
  const actions = actionsColumn<Budget>((budget) => (
    <Button look="slight" of={`the budget of ${budget.name}`} onClick={() => changeBudget(access, budget)}>
      Change
    </Button>
  ));
  return (
    <TablePanel
      title="Thresholds"
      actions={<LowBalance access={access} />}
      caption="Budgets with the percentages that are reported, newest first"
      look="keys"
      columns={mayManage(access) ? [...COLUMNS, actions] : COLUMNS}
      list={budgets}
      keyOf={({ id }) => id}
      none="No budget yet. The page Team creates them."
    >
      <Pager {...pages.pagerOf(budgets.data)} />
    </TablePanel>
  );
}

const COLUMNS: readonly Column<Budget>[] = [
  BUDGET_NAME,
  BUDGET_SPENT,
  {
    title: 'Reported at',
    look: 'figure small',
    cell: ({ thresholds }) => `${thresholds.join(', ')} %`,
  },
];

function LowBalance({ access }: WithAccess) {
  const { data } = useResource<AccountSettings>(access.account);
  if (data === undefined) return <Bone width="12ch" />;
  const { balanceLowUsd } = data;
  return (
    <>
      <span class="quiet small">
        {balanceLowUsd === null
          ? 'A low balance is not reported'
          : `A balance below ${shortUsd(balanceLowUsd)} is reported`}
      </span>
      {mayManage(access) && (
        <Button of="of the balance" onClick={() => changeLowBalance(access.account, balanceLowUsd)}>
          Change
        </Button>
      )}
    </>
  );
}

function changeLowBalance(path: string, balanceLowUsd: string | null): void {
  decide({
    title: 'Report a low balance',
    verb: 'Save',
    fields: [
      {
        name: 'balanceLowUsd',
        label: 'Report a balance below',
        kind: 'amount',
        hint: 'Each time the balance falls below it there is an event. Leave empty for none.',
        value: balanceLowUsd === null ? '' : plainUsd(balanceLowUsd),
      },
    ],
    act: (values) => ask(path, { method: 'PATCH', body: { balanceLowUsd: values['balanceLowUsd'] ?? null } }),
    done: 'The threshold of the balance is changed.',
  });
}
