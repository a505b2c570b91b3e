import type { WithAccess } from '../access';
import { ask, withQuery } from '../api';
import { exactUsd } from '../money';
import { showMaybe } from '../numbers';
import { AlertPanels } from '../pages/alerts/alert-panels';
import { openKeyDialog } from '../pages/keys/key-dialogs';
import { KeysTable } from '../pages/keys/keys-table';
import { TeamPanels } from '../pages/team/team-panels';
import { Button } from '../parts/button';
import { decide } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { Page, Panel, type Stat, Stats } from '../parts/page';
import { Bone } from '../parts/states';
import { type Column, TablePanel, timeColumn } from '../parts/table';
import { chosenIn, QueryChoice } from '../parts/toolbar';
import { Amount, Badge, Copied } from '../parts/values';
import { useResource } from '../resource';
import type { ApiKey, List } from '../shapes';
import { showDuration, showMoment } from '../times';
import { AccountStatus } from './accounts-page';
import { accessTo, mayChange } from './session';
import type { Account, UsageRecord } from './shapes';

const EVERY_MS = 5_000;
const VIEWS = [
  { value: 'spending', text: 'Money and keys' },
  { value: 'team', text: 'Team' },
  { value: 'alerts', text: 'Alerts' },
] as const;

export function AccountPage({ id }: { readonly id: string }) {
  const access = accessTo(id);
  const account = useResource<Account>(access.account, { everyMs: EVERY_MS });
  const { data, failure } = account;
  const view = chosenIn('view', VIEWS);
  const actions = data !== undefined && mayChange() && (
    <>
      <Button onClick={() => book(data, 'credits')}>Credit</Button>
      <Button onClick={() => book(data, 'debits')}>Debit</Button>
      <Button look={data.status === 'active' ? 'danger' : undefined} onClick={() => freeze(data)}>
        {data.status === 'active' ? 'Freeze' : 'Unfreeze'}
      </Button>
    </>
  );
  return (
    <Page
      title={data?.name ?? (failure === undefined ? <Bone width="10ch" /> : 'Account')}
      beside={data && <AccountStatus status={data.status} />}
      back={{ path: '/accounts', name: 'Accounts' }}
      actions={actions}
      tools={
        <>
          <p class="sub-head quiet small">
            <Copied text={id} label="Copy the id of the account" />
          </p>
          <div class="toolbar row">
            <QueryChoice label="What to show of the account" name="view" options={VIEWS} />
          </div>
        </>
      }
      from={account}
    >
      {view === 'spending' && (
        <>
          <Panel label="Money">
            <Stats of={statsOf(data)} />
          </Panel>
          <KeysPanel access={access} />
          <UsagePanel accountId={id} />
        </>
      )}
      {view === 'team' && <TeamPanels access={access} />}
      {view === 'alerts' && <AlertPanels access={access} />}
    </Page>
  );
}

function statsOf(account: Account | undefined): readonly Stat[] {
  const stat = (name: string, usd: string | null | undefined, more: string): Stat => ({
    name,
    value: usd === undefined ? undefined : <Amount usd={usd} />,
    more: usd === null ? 'the ledger does not answer' : more,
  });
  return [
    stat('Available', account?.availableUsd, 'for new calls'),
    stat('Balance', account?.balanceUsd, 'after all entries'),
    stat('Held', account?.heldUsd, 'for running calls and sandboxes'),
    stat('Excess', account?.excessUsd, 'charged above holds, paid by the platform'),
  ];
}

function KeysPanel({ access }: WithAccess) {
  const keys = useResource<List<ApiKey>>(withQuery(access.list('keys'), { limit: 200 }), { everyMs: EVERY_MS });
  const create = mayChange() && (
    <Button onClick={() => openKeyDialog(access)}>
      <Icon name="plus" /> Create a key
    </Button>
  );
  return (
    <Panel title="API keys" actions={create} from={keys}>
      <KeysTable list={keys} access={access} none="This account has no key." />
    </Panel>
  );
}

const USAGE_EVERY_MS = 3_000;
const USAGE_ROWS = 10;

/** The newest calls of an account. */
function UsagePanel({ accountId }: { readonly accountId: string }) {
  const path = `/admin/v1/usage?account=${accountId}&limit=${USAGE_ROWS}`;
  const usage = useResource<List<UsageRecord>>(path, { everyMs: USAGE_EVERY_MS });
  const csv = (
    <a class="button" href={`/admin/v1/usage.csv?account=${accountId}`} download="usage.csv">
      CSV
    </a>
  );
  return (
    <TablePanel
      title="Usage"
      hint={`the newest ${USAGE_ROWS} calls`}
      actions={csv}
      caption="Usage records, newest first"
      look="records"
      columns={USAGE_COLUMNS}
      list={usage}
      keyOf={({ requestId }) => requestId}
      none="This account has made no call yet."
    />
  );
}

const USAGE_COLUMNS: readonly Column<UsageRecord>[] = [
  timeColumn('Time', ({ createdAt }) => createdAt, { look: '', as: showMoment }),
  {
    title: 'Status',
    cell: ({ status, errorCode }) => (
      <Badge tone={status < 400 && errorCode === null ? 'good' : 'bad'}>{errorCode ?? status}</Badge>
    ),
  },
  { title: 'Model', look: 'mono', cell: ({ model, modelRequested }) => model ?? modelRequested ?? '–' },
  { title: 'Upstream', room: 'from-m', look: 'mono', cell: ({ upstream }) => upstream ?? '–' },
  { title: 'Key', room: 'from-m', cell: ({ keyName }) => keyName ?? '–' },
  { title: 'Tokens', isNumber: true, room: 'from-l', cell: ({ totalTokens }) => showMaybe(totalTokens) },
  { title: 'Duration', isNumber: true, room: 'from-m', cell: ({ responseTimeMs }) => showDuration(responseTimeMs) },
  { title: 'Cost', isNumber: true, cell: ({ cost }) => exactUsd(cost) },
];

/** Opens a dialog that books a credit or a debit. One idempotency key per dialog prevents a second booking on a retry. */
function book({ id, name, availableUsd }: Account, noun: 'credits' | 'debits'): void {
  const isCredit = noun === 'credits';
  const idempotencyKey = `page-${newKey()}`;
  decide({
    title: isCredit ? `Credit ${name}` : `Debit ${name}`,
    verb: isCredit ? 'Book the credit' : 'Book the debit',
    isDestructive: !isCredit,
    text: (
      <p class="quiet">
        {isCredit ? 'The next call can spend it.' : 'You can debit at most what is available.'}
        {availableUsd !== null && ` Available now: ${exactUsd(availableUsd)}.`} An entry cannot be removed. Correct it
        with an entry of the opposite sign.
      </p>
    ),
    fields: [
      { name: 'amountUsd', label: 'Amount', kind: 'amount', isRequired: true, placeholder: '25.00' },
      { name: 'note', label: 'Note', hint: 'For example the number of the invoice.' },
    ],
    act: (values) => ask(`/admin/v1/accounts/${id}/${noun}`, { method: 'POST', body: { ...values, idempotencyKey } }),
    done: isCredit ? 'The credit is booked.' : 'The debit is booked.',
  });
}

/** Returns a new idempotency key, without `crypto.randomUUID`, which exists only on https and localhost. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function freeze({ id, name, status }: Account): void {
  const isActive = status === 'active';
  decide({
    title: isActive ? 'Freeze the account?' : 'Unfreeze the account?',
    verb: isActive ? 'Freeze' : 'Unfreeze',
    isDestructive: isActive,
    keep: isActive ? 'Keep it active' : 'Keep it frozen',
    text: isActive ? (
      <p>
        The gateway refuses new calls of <strong>{name}</strong> until you unfreeze the account. Running calls continue
        to their end.
      </p>
    ) : (
      <p>
        The gateway accepts calls of <strong>{name}</strong> again. Its excess starts at zero.
      </p>
    ),
    act: () => ask(`/admin/v1/accounts/${id}/${isActive ? 'freeze' : 'unfreeze'}`, { method: 'POST', body: {} }),
    done: isActive ? `${name} is frozen.` : `${name} is active.`,
  });
}
