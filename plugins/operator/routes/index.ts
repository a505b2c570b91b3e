import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import type { SessionTimes } from '../../../core/sign-in/sessions';
import { accountRoutes } from './accounts';
import { budgetRoutes } from './budgets';
import { configurationRoutes } from './configuration';
import { consoleAccountRoutes } from './console';
import { eventRoutes } from './events';
import { invitationRoutes } from './invitations';
import { operatorKeyRoutes } from './keys';
import { ledgerRoutes } from './ledger';
import { operatorPageRoutes } from './page';
import { proposalRoutes } from './proposals';
import { sessionRoutes } from './session';
import { teamRoutes } from './teams';
import { tokenRoutes } from './tokens';
import { upstreamRoutes } from './upstreams';
import { userRoutes } from './users';
import { webhookRoutes } from './webhooks';

/** Lists the operator's endpoints; docs/contract.md, section 7. */
export function operatorRoutes(gateway: PluginGateway, times: SessionTimes): readonly Route[] {
  const ofAccounts = [
    ...userRoutes(gateway),
    ...invitationRoutes(gateway),
    ...teamRoutes(gateway),
    ...budgetRoutes(gateway),
    ...webhookRoutes(gateway),
  ];
  return [
    ...accountRoutes(gateway),
    ...operatorKeyRoutes(gateway),
    ...ofAccounts,
    ...consoleAccountRoutes(gateway, ofAccounts),
    ...eventRoutes(gateway),
    ...tokenRoutes(gateway.database),
    ...ledgerRoutes(gateway),
    ...configurationRoutes(gateway),
    ...proposalRoutes(gateway),
    ...upstreamRoutes(gateway),
    ...operatorPageRoutes(gateway),
    ...sessionRoutes(gateway, times),
  ];
}
