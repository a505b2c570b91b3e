import { useRef, useState } from 'preact/hooks';
import { ask, type Failure, withQuery } from '../api';
import { exactUsd } from '../money';
import { plural } from '../numbers';
import { Button } from '../parts/button';
import { decide } from '../parts/dialog';
import { Page, Panel } from '../parts/page';
import { Pager, usePages } from '../parts/pager';
import { Empty, Failed } from '../parts/states';
import { type Column, Table, TablePanel, timeColumn } from '../parts/table';
import { Badge, NONE } from '../parts/values';
import { toFailure, useResource } from '../resource';
import type { List } from '../shapes';
import { showClock, showMoment } from '../times';
import { AccountLink } from './accounts-page';
import { mayChange } from './session';
import type { Shortfall, Verified, Violation } from './shapes';

/** The results so far of checking the ledger account by account. */
interface Pass {
  readonly violations: readonly Violation[];
  readonly accounts: number;
  readonly entries: number;
  readonly isOver: boolean;
  readonly isRepair: boolean;
  readonly at: number;
}

const PAGE_ACCOUNTS = 100;

export function LedgerPage() {
  const [pass, setPass] = useState<Pass>();
  const [failure, setFailure] = useState<Failure>();
  const run = useRef(0);
  const isUnderWay = pass !== undefined && !pass.isOver && failure === undefined;

  const go = async (isRepair: boolean) => {
    run.current += 1;
    const own = run.current;
    setFailure(undefined);
    let seen: Pass = { violations: [], accounts: 0, entries: 0, isOver: false, isRepair, at: Date.now() };
    setPass(seen);
    let cursor: string | undefined;
    do {
      const path = withQuery(`/admin/v1/ledger/${isRepair ? 'repair' : 'verify'}`, { limit: PAGE_ACCOUNTS, cursor });
      const page: Verified = await ask(path, isRepair ? { method: 'POST', body: {} } : {});
      if (own !== run.current) return;
      cursor = page.nextCursor ?? undefined;
      seen = {
        ...seen,
        violations: [...seen.violations, ...page.items],
        accounts: seen.accounts + page.accounts,
        entries: seen.entries + page.entries,
        isOver: cursor === undefined,
      };
      setPass(seen);
    } while (cursor !== undefined);
  };
  const verify = () => go(false).catch((error: unknown) => setFailure(toFailure(error)));
  const repair = () =>
    decide({
      title: 'Repair the ledger?',
      verb: 'Repair',
      isDestructive: true,
      text: (
        <p>
          The repair writes entries that correct what they can. Entries cannot be removed. An operator must correct what
          remains. The audit log names each repair.
        </p>
      ),
      act: () => go(true),
      done: 'The repair has ended.',
    });
  const isRepairable = pass?.isOver === true && !pass.isRepair && pass.violations.length > 0;
  const actions = (
    <>
      {mayChange() && isRepairable && (
        <Button look="danger" onClick={repair}>
          Repair
        </Button>
      )}
      <Button look="primary" isDisabled={isUnderWay} onClick={verify}>
        {isUnderWay ? 'Verifying …' : pass === undefined ? 'Verify' : 'Verify again'}
      </Button>
    </>
  );
  return (
    <Page
      title="Ledger"
      actions={actions}
      tools={failure !== undefined && <Failed failure={failure} onRetry={verify} />}
    >
      <Panel label="Invariants">
        {pass === undefined ? (
          <Empty
            icon="ledger"
            title="Not verified yet"
            text="Verify compares balances, holds, entries and usage records of all accounts. They must agree to the last digit. It changes nothing, and calls continue."
          />
        ) : (
          <Found pass={pass} />
        )}
      </Panel>
      <Shortfalls />
    </Page>
  );
}

function Found({ pass: { violations, accounts, entries, isOver, isRepair, at } }: { readonly pass: Pass }) {
  return (
    <>
      <div class="panel-head row" role="status">
        {violations.length > 0 ? (
          <Badge tone="bad">{plural(violations.length, 'violation')}</Badge>
        ) : (
          <Badge tone={isOver ? 'good' : 'accent'}>{isOver ? 'No violations' : 'Nothing found so far'}</Badge>
        )}
        <span class="quiet small">
          {plural(accounts, 'account')} and {plural(entries, 'entry', 'entries')}{' '}
          {isRepair ? 'checked and repaired' : 'verified'}, {showClock(at)}
        </span>
      </div>
      {violations.length > 0 && (
        <Table
          label="Violations"
          caption="Invariants that do not hold"
          columns={COLUMNS}
          rows={violations}
          keyOf={({ invariant, accountId, scope, rid }) => `${invariant} ${accountId} ${scope} ${rid}`}
        />
      )}
    </>
  );
}

const REPAIRS: Readonly<Record<NonNullable<Violation['repair']>, string>> = {
  expired: 'The hold was released',
  credit_sent: 'The credit was sent again',
  charge_credited: 'The charge was credited',
};

const COLUMNS: readonly Column<Violation>[] = [
  {
    title: 'What must hold',
    cell: ({ holds, invariant }) => (
      <>
        {holds}
        <span class="sub faint small mono">{invariant}</span>
      </>
    ),
  },
  {
    title: 'Account',
    cell: ({ accountId }) =>
      accountId === null ? <span class="faint">all</span> : <AccountLink accountId={accountId} />,
  },
  { title: 'Expected', room: 'from-m', look: 'mono', cell: ({ expected }) => expected },
  { title: 'Found', look: 'mono', cell: ({ found }) => found },
  { title: 'Repair', room: 'from-m', cell: ({ repair }) => (repair === null ? NONE : REPAIRS[repair]) },
];

/** The panel of shortfalls: charges that collected less than the cost. The platform pays the rest. */
function Shortfalls() {
  const pages = usePages('/admin/v1/ledger/shortfalls?limit=20');
  const shortfalls = useResource<List<Shortfall>>(pages.path);
  return (
    <TablePanel
      title="Shortfalls"
      hint="charges below what was due"
      caption="Shortfalls, newest first"
      columns={SHORTFALL_COLUMNS}
      list={shortfalls}
      keyOf={({ rid }) => rid}
      none="Every charge was complete."
    >
      <Pager {...pages.pagerOf(shortfalls.data)} />
    </TablePanel>
  );
}

const SHORTFALL_COLUMNS: readonly Column<Shortfall>[] = [
  timeColumn('Time', ({ createdAt }) => createdAt, { look: 'figure small', as: showMoment }),
  { title: 'Account', cell: ({ accountId }) => <AccountLink accountId={accountId} /> },
  { title: 'Due', isNumber: true, room: 'from-m', cell: ({ dueUsd }) => exactUsd(dueUsd) },
  { title: 'Charged', isNumber: true, room: 'from-m', cell: ({ chargedUsd }) => exactUsd(chargedUsd) },
  { title: 'Short', isNumber: true, cell: ({ shortfallUsd }) => exactUsd(shortfallUsd) },
];
