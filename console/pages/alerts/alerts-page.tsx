import { Page } from '../../parts/page';
import { ownAccess } from '../../session';
import { AlertPanels } from './alert-panels';

export function AlertsPage() {
  return (
    <Page title="Alerts">
      <AlertPanels access={ownAccess()} />
    </Page>
  );
}
