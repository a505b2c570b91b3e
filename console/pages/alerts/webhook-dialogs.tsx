import { useState } from 'preact/hooks';
import type { Access } from '../../access';
import { ask } from '../../api';
import { Checks } from '../../parts/checks';
import { DecisionDialog, decide, showDialog, showSecret } from '../../parts/dialog';
import { Segmented } from '../../parts/toolbar';
import type { NewWebhook, Webhook } from '../../shapes';
import { GRACES } from '../keys/key-dialogs';
import { EVENT_TYPES } from './events';

export function editWebhook(access: Access, webhook?: Webhook): void {
  showDialog(<WebhookDialog access={access} webhook={webhook} />);
}

interface Props {
  readonly access: Access;
  readonly webhook: Webhook | undefined;
}

/** A dialog that creates or edits a webhook. */
function WebhookDialog({ access, webhook }: Props) {
  const [types, setTypes] = useState<readonly string[] | null>(webhook?.types ?? null);
  const save = ({ url }: Readonly<Record<string, string>>) =>
    webhook === undefined
      ? ask<NewWebhook>(access.list('webhooks'), { method: 'POST', body: { url, ...(types !== null && { types }) } })
      : ask<Webhook>(access.one('webhooks', webhook.id), { method: 'PATCH', body: { url, types } });
  return (
    <DecisionDialog
      title={webhook === undefined ? 'Create a webhook' : 'Edit the webhook'}
      verb={webhook === undefined ? 'Create the webhook' : 'Save'}
      fields={[
        {
          name: 'url',
          label: 'Address',
          hint: 'An https address of yours that answers with a status of 2xx within 10 seconds.',
          placeholder: 'https://example.com/hooks/tollgate',
          isRequired: true,
          maxLength: 2_000,
          value: webhook?.url ?? '',
        },
      ]}
      isComplete={types?.length !== 0}
      act={save}
      onDone={(saved: Webhook | NewWebhook) => 'secret' in saved && showWebhookSecret(saved)}
    >
      <fieldset class="group stack">
        <legend>Events</legend>
        <Segmented
          label="Events that the webhook receives"
          value={types === null ? 'all' : 'some'}
          options={[
            { value: 'all', text: 'All events' },
            { value: 'some', text: 'Only these' },
          ]}
          onChange={(value) => setTypes(value === 'all' ? null : [])}
        />
        {types !== null && (
          <Checks search="Search events" look="mono" options={EVENT_TYPES} chosen={types} onChange={setTypes} />
        )}
      </fieldset>
    </DecisionDialog>
  );
}

function showWebhookSecret({ url, secret }: NewWebhook): void {
  showSecret({ title: 'The signing secret', name: url, noun: 'secret', secret, ifLost: 'rotate it' });
}

export function testWebhook(access: Access, { id, url }: Webhook): void {
  decide({
    title: 'Send a test',
    verb: 'Send the test',
    text: (
      <p>
        <strong>{url}</strong> gets a signed <code>webhook.test</code>. Its outcome is in the list of deliveries.
      </p>
    ),
    act: () => ask(`${access.one('webhooks', id)}/test`, { method: 'POST', body: {} }),
    done: 'The test is on its way.',
  });
}

/** Opens a dialog that rotates a webhook's secret. Both secrets sign during the grace period, so that the receiver can switch. */
export function rotateSecret(access: Access, { id, url }: Webhook): void {
  decide({
    title: 'Rotate the secret',
    verb: 'Rotate the secret',
    text: (
      <p>
        <strong>{url}</strong> gets a new secret. Until the old one ends, both sign each request.
      </p>
    ),
    fields: [{ name: 'graceSeconds', label: 'The old secret signs for', options: GRACES, value: GRACES[0].value }],
    act: ({ graceSeconds }) =>
      ask<NewWebhook>(`${access.one('webhooks', id)}/rotate`, {
        method: 'POST',
        body: { graceSeconds: Number(graceSeconds) },
      }),
    onDone: showWebhookSecret,
  });
}

export function switchWebhook(access: Access, { id, url, status }: Webhook): void {
  const isActive = status === 'active';
  decide({
    title: isActive ? 'Disable the webhook?' : 'Enable the webhook?',
    verb: isActive ? 'Disable' : 'Enable',
    text: (
      <p>
        {isActive ? 'The gateway sends nothing to ' : 'The gateway sends what is pending, and each new event, to '}
        <strong>{url}</strong>
        {isActive ? ' until you enable it. New events wait.' : '.'}
      </p>
    ),
    act: () => ask(access.one('webhooks', id), { method: 'PATCH', body: { status: isActive ? 'disabled' : 'active' } }),
    done: isActive ? 'The webhook is disabled.' : 'The webhook is enabled.',
  });
}

export function removeWebhook(access: Access, { id, url }: Webhook): void {
  decide({
    title: 'Remove the webhook?',
    verb: 'Remove the webhook',
    isDestructive: true,
    keep: 'Keep it',
    text: (
      <p>
        <strong>{url}</strong> receives nothing more, and its secret and the list of its deliveries are deleted.
      </p>
    ),
    act: () => ask(access.one('webhooks', id), { method: 'DELETE' }),
    done: 'The webhook is removed.',
  });
}
