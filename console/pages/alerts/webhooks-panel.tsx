import { mayManage, type WithAccess } from '../../access';
import { withQuery } from '../../api';
import { Button } from '../../parts/button';
import { Icon } from '../../parts/icon';
import { actionsColumn, type Column, TablePanel } from '../../parts/table';
import { Badge, Named } from '../../parts/values';
import { useResource } from '../../resource';
import { changeQuery, place } from '../../router';
import type { Delivery, List, Webhook } from '../../shapes';
import { DeliveryState } from './deliveries';
import { editWebhook, testWebhook } from './webhook-dialogs';
import { WebhookSheet } from './webhook-sheet';

const EVERY_MS = 5_000;

export function WebhooksPanel({ access }: WithAccess) {
  const webhooks = useResource<List<Webhook>>(access.list('webhooks'), { everyMs: EVERY_MS });
  const opened = webhooks.data?.items.find(({ id }) => id === place.value.query.get('webhook'));
  const show = ({ id }: Webhook) => changeQuery({ webhook: id });
  const columns: readonly Column<Webhook>[] = [
    { title: 'Address', cell: ({ url, types }) => <Named name={url} sub={types?.join(', ') ?? 'all events'} /> },
    { title: 'Status', cell: ({ status }) => <WebhookState status={status} /> },
    {
      title: 'Last delivery',
      room: 'from-m',
      cell: ({ id }) => <LastDelivery path={`${access.one('webhooks', id)}/deliveries`} />,
    },
    actionsColumn((webhook) => (
      <>
        {mayManage(access) && (
          <Button look="slight" of={webhook.url} onClick={() => testWebhook(access, webhook)}>
            Test
          </Button>
        )}
        <Button look="slight" of={`of ${webhook.url}`} onClick={() => show(webhook)}>
          Deliveries
        </Button>
      </>
    )),
  ];
  const create = mayManage(access) && (
    <Button onClick={() => editWebhook(access)}>
      <Icon name="plus" /> Create a webhook
    </Button>
  );
  return (
    <>
      <TablePanel
        title="Webhooks"
        hint="addresses that receive the events"
        actions={create}
        caption="Webhooks, newest first"
        look="keys"
        columns={columns}
        list={webhooks}
        keyOf={({ id }) => id}
        bones={1}
        none="No webhook yet. It receives each event as a signed request, as Standard Webhooks describes."
      />
      {opened !== undefined && (
        <WebhookSheet access={access} webhook={opened} onClose={() => changeQuery({ webhook: undefined })} />
      )}
    </>
  );
}

export function WebhookState({ status }: Pick<Webhook, 'status'>) {
  return <Badge tone={status === 'active' ? 'good' : 'bad'}>{status === 'active' ? 'Active' : 'Disabled'}</Badge>;
}

function LastDelivery({ path }: { readonly path: string }) {
  const { data } = useResource<List<Delivery>>(withQuery(path, { limit: 1 }), { everyMs: EVERY_MS });
  const [last] = data?.items ?? [];
  if (last === undefined) return <span class="faint small">{data === undefined ? '…' : 'None yet'}</span>;
  return <DeliveryState delivery={last} />;
}
