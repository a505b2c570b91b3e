import { type Access, mayManage } from '../../access';
import { Button } from '../../parts/button';
import { Dialog } from '../../parts/dialog';
import { Copied, Fact, When } from '../../parts/values';
import type { Webhook } from '../../shapes';
import { showWhole } from '../../times';
import { Deliveries } from './deliveries';
import { editWebhook, removeWebhook, rotateSecret, switchWebhook, testWebhook } from './webhook-dialogs';
import { WebhookState } from './webhooks-panel';

interface Props {
  readonly access: Access;
  readonly webhook: Webhook;
  readonly onClose: () => void;
}

/** The sheet of one webhook: what it receives, its buttons, and its deliveries. */
export function WebhookSheet({ access, webhook, onClose }: Props) {
  const { id, url, types, status, createdAt } = webhook;
  const isActive = status === 'active';
  return (
    <Dialog title="Webhook" kind="sheet" onClose={onClose}>
      <div class="record">
        <WebhookState status={status} />
        {!isActive && (
          <p class="note warn">It receives tests only. Once it is enabled, it continues with what is pending.</p>
        )}
        <dl class="facts">
          <Fact name="Address">
            <Copied text={url} label="Copy the address" />
          </Fact>
          <Fact name="Events">{types?.join(', ') ?? 'All'}</Fact>
          <Fact name="Created">
            <When at={createdAt} as={showWhole} />
          </Fact>
        </dl>
        {mayManage(access) && (
          <div class="row">
            <Button onClick={() => testWebhook(access, webhook)}>Send a test</Button>
            <Button onClick={() => editWebhook(access, webhook)}>Edit</Button>
            <Button onClick={() => rotateSecret(access, webhook)}>Rotate the secret</Button>
            <Button onClick={() => switchWebhook(access, webhook)}>{isActive ? 'Disable' : 'Enable'}</Button>
            <Button look="danger" onClick={() => removeWebhook(access, webhook)}>
              Remove
            </Button>
          </div>
        )}
        <h3>Deliveries</h3>
        <Deliveries access={access} webhookId={id} />
      </div>
    </Dialog>
  );
}
