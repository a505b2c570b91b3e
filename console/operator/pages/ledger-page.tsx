import { useRef, useState } from 'preact/hooks';
import { ask, type Failure, withQuery } from '../../api';
import { plural } from '../../numbers';
import { ActDialog } from '../../parts/act-dialog';
import { Badge } from '../../parts/badge';
import { Empty, Failed } from '../../parts/states';
import { type Column, Table } from '../../parts/table';
import { toFailure } from '../../resource';
import { hrefOf } from '../../router';
import { showClock } from '../../times';
import { mayChange } from '../session';
import type { Verified, Violation } from '../shapes';
import { ShortfallsPanel } from './shortfalls-panel';

/** The results of a pass over the ledger so far. */
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
  const [isAsking, setAsking] = useState(false);
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
  return (
    <div class="page">
      <header class="page-head">
        <h1>Ledger</h1>
        <span class="grow" />
        {mayChange() && pass !== undefined && pass.violations.length > 0 && !pass.isRepair && pass.isOver && (
          <button type="button" class="button danger" onClick={() => setAsking(true)}>
            Repair
          </button>
        )}
        <button type="button" class="button primary" disabled={isUnderWay} onClick={verify}>
          {isUnderWay ? 'Verifying …' : pass === undefined ? 'Verify' : 'Verify again'}
        </button>
      </header>
      {failure !== undefined && <Failed failure={failure} onRetry={verify} />}
      <section class="panel" aria-label="Invariants">
        {pass === undefined ? (
          <Empty icon="ledger" title="Not verified yet">
            <p class="quiet">
              Verify compares balances, holds, entries and usage records of all accounts. They must agree to the last
              digit. It changes nothing, and calls continue.
            </p>
          </Empty>
        ) : (
          <>
            <div class="panel-head" role="status">
              {pass.violations.length > 0 ? (
                <Badge tone="bad">{plural(pass.violations.length, 'violation')}</Badge>
              ) : (
                <Badge tone={pass.isOver ? 'good' : 'accent'}>
                  {pass.isOver ? 'No violations' : 'Nothing found so far'}
                </Badge>
              )}
              <span class="quiet small">
                {plural(pass.accounts, 'account')} and {plural(pass.entries, 'entry', 'entries')}{' '}
                {pass.isRepair ? 'checked and repaired' : 'verified'}, {showClock(pass.at)}
              </span>
            </div>
            {pass.violations.length > 0 && (
              <Table
                label="Violations"
                caption="Invariants that do not hold"
                columns={COLUMNS}
                rows={pass.violations}
                keyOf={({ invariant, accountId, keyId, rid }) => `${invariant} ${accountId} ${keyId} ${rid}`}
              />
            )}
          </>
        )}
      </section>
      <ShortfallsPanel />
      {isAsking && (
        <ActDialog
          title="Repair the ledger?"
          verb="Repair"
          isDestructive
          done="The repair has ended."
          act={() => go(true)}
          onDone={() => setAsking(false)}
          onClose={() => setAsking(false)}
        >
          {() => (
            <p>
              The repair writes entries that correct what they can. Entries cannot be removed. An operator must correct
              what remains. The audit log names each repair.
            </p>
          )}
        </ActDialog>
      )}
    </div>
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
      accountId === null ? (
        <span class="faint">all</span>
      ) : (
        <a href={hrefOf(`/accounts/${accountId}`)}>{accountId.slice(0, 8)}</a>
      ),
  },
  { title: 'Expected', room: 'from-m', look: 'mono', cell: ({ expected }) => expected },
  { title: 'Found', look: 'mono', cell: ({ found }) => found },
  {
    title: 'Repair',
    room: 'from-m',
    cell: ({ repair }) => (repair === null ? <span class="faint">–</span> : REPAIRS[repair]),
  },
];
