import { type Access, mayManage } from '../../access';
import { ask, withQuery } from '../../api';
import { plural } from '../../numbers';
import { announce } from '../../parts/announce';
import { Button } from '../../parts/button';
import { useAct } from '../../parts/dialog';
import { Pager, usePages } from '../../parts/pager';
import { Failed } from '../../parts/states';
import { actionsColumn, type Column, Table } from '../../parts/table';
import { Badge, type Tone, When } from '../../parts/values';
import { useResource } from '../../resource';
import type { Delivery, List } from '../../shapes';
import { showMoment } from '../../times';

const EVERY_MS = 2_000;
const PAGE_ROWS = 20;

const TONES: Readonly<Record<Delivery['status'], Tone>> = { pending: 'warn', delivered: 'good', failed: 'bad' };

/** The outcome of a delivery, with what the receiver answered and when it is tried again. */
export function DeliveryState({ delivery }: { readonly delivery: Delivery }) {
  const { status, attempts, responseStatus, error, nextAttemptAt } = delivery;
  const facts = [
    ...(attempts > 1 ? [plural(attempts, 'attempt')] : []),
    ...(error !== null ? [error] : responseStatus !== null ? [`answered ${responseStatus}`] : []),
  ];
  return (
    <>
      <Badge tone={TONES[status]}>{status}</Badge>
      {facts.length > 0 && <span class="sub faint small">{facts.join(', ')}</span>}
      {status === 'pending' && attempts > 0 && (
        <span class="sub faint small">
          next <When at={nextAttemptAt} />
        </span>
      )}
    </>
  );
}

const COLUMNS: readonly Column<Delivery>[] = [
  {
    title: 'Event',
    cell: ({ type, createdAt }) => (
      <>
        {type}
        <span class="sub faint small">
          <When at={createdAt} as={showMoment} />
        </span>
      </>
    ),
  },
  { title: 'Outcome', cell: (delivery) => <DeliveryState delivery={delivery} /> },
];

interface Props {
  readonly access: Access;
  readonly webhookId: string;
}

/** The deliveries of a webhook, newest first. */
export function Deliveries({ access, webhookId }: Props) {
  const path = `${access.one('webhooks', webhookId)}/deliveries`;
  const pages = usePages(withQuery(path, { limit: PAGE_ROWS }));
  const deliveries = useResource<List<Delivery>>(pages.path, { everyMs: EVERY_MS });
  const actions = actionsColumn<Delivery>(({ id, type, status }) => (
    <Redeliver path={`${path}/${id}/redeliver`} type={type} verb={status === 'pending' ? 'Send now' : 'Send again'} />
  ));
  return (
    <>
      {deliveries.failure !== undefined && <Failed failure={deliveries.failure} />}
      <Table
        caption="Deliveries, newest first"
        look="small-table deliveries"
        columns={mayManage(access) ? [...COLUMNS, actions] : COLUMNS}
        list={deliveries}
        keyOf={({ id }) => id}
        none="Nothing was delivered yet."
      />
      <Pager {...pages.pagerOf(deliveries.data)} />
    </>
  );
}

interface RedeliverProps {
  readonly path: string;
  readonly type: string;
  readonly verb: string;
}

/** A button that sends a delivery once more, with the same id and body. */
function Redeliver({ path, type, verb }: RedeliverProps) {
  const { failure, isBusy, run } = useAct(async () => {
    await ask(path, { method: 'POST', body: {} });
    announce('It is sent again.');
  });
  return (
    <>
      <Button look="slight" of={type} isDisabled={isBusy} onClick={() => void run()}>
        {verb}
      </Button>
      {failure !== undefined && <span class="sub small is-bad">{failure.message}</span>}
    </>
  );
}
