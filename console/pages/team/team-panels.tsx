import { mayManage, type WithAccess } from '../../access';
import { withQuery } from '../../api';
import { Failed } from '../../parts/states';
import { useResource } from '../../resource';
import type { ApiKey, List } from '../../shapes';
import { BudgetsPanel } from './budgets-panel';
import { ALL, useCrew } from './crew';
import { InvitationsPanel } from './invitations-panel';
import { MembersPanel } from './members-panel';
import { TeamsPanel } from './teams-panel';

/** The panels of an account's members, invitations, teams and budgets. */
export function TeamPanels({ access }: WithAccess) {
  const crew = useCrew(access);
  const active = useResource<List<ApiKey>>(withQuery(access.list('keys'), { status: 'active', limit: ALL }));
  const keys = active.data?.items ?? [];
  return (
    <>
      {active.failure && <Failed failure={active.failure} />}
      <MembersPanel access={access} crew={crew} keys={active.data?.items} />
      {mayManage(access) && <InvitationsPanel access={access} crew={crew} />}
      <TeamsPanel access={access} crew={crew} keys={keys} />
      <BudgetsPanel access={access} crew={crew} keys={keys} />
    </>
  );
}
