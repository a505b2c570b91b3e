import type { WithAccess } from '../../access';
import { EventsPanel } from './events-panel';
import { ThresholdsPanel } from './thresholds-panel';
import { WebhooksPanel } from './webhooks-panel';

/** The panels of an account's thresholds, webhooks and events. */
export function AlertPanels({ access }: WithAccess) {
  return (
    <>
      <ThresholdsPanel access={access} />
      <WebhooksPanel access={access} />
      <EventsPanel access={access} />
    </>
  );
}
