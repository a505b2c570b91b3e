import { Page } from '../../parts/page';
import { ownAccess } from '../../session';
import { TeamPanels } from './team-panels';

export function TeamPage() {
  return (
    <Page title="Team">
      <TeamPanels access={ownAccess()} />
    </Page>
  );
}
