import { servePage } from '../../../core/api/built-page';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import type { SessionTimes } from '../../../core/sign-in/sessions';
import {
  bookCreditRoute,
  changeAccountRoute,
  changeAccountStatusRoute,
  createAccountRoute,
  listAccountsRoute,
  showAccountRoute,
} from './accounts';
import {
  applyConfigRoute,
  listConfigRevisionsRoute,
  reloadConfigRoute,
  rollBackConfigRoute,
  showConfigRevisionRoute,
  showConfigRoute,
  showConfigStatusRoute,
} from './configuration';
import { changeKeyRoute, createKeyRoute, listKeysRoute, revokeKeyRoute, rotateKeyRoute } from './keys';
import { listShortfallsRoute, repairLedgerRoute, verifyLedgerRoute } from './ledger';
import { listAuditRoute, showNowRoute, showOperatorPageRoute } from './page';
import { endOperatorSessionRoute, showOperatorSessionRoute, signInOperatorRoute } from './session';
import { createTokenRoute, listTokensRoute, revokeTokenRoute, showOwnTokenRoute } from './tokens';
import {
  disableUpstreamRoute,
  enableUpstreamRoute,
  listUpstreamsRoute,
  recordUpstreamRoute,
  showUpstreamRoute,
  testUpstreamRoute,
} from './upstreams';
import { changeUserRoute, createUserRoute, listUsersRoute, makeSignInLinkRoute, unbindIdentityRoute } from './users';

/** Lists the operator's endpoints; docs/contract.md, section 7. */
export function operatorRoutes(gateway: PluginGateway, times: SessionTimes): readonly Route[] {
  const { database, ledger } = gateway;
  const page = servePage('operator');
  const stores = { database, ledger };
  return [
    createAccountRoute(gateway),
    listAccountsRoute(stores),
    showAccountRoute(stores),
    changeAccountRoute(gateway),
    changeAccountStatusRoute(stores, 'freeze'),
    changeAccountStatusRoute(stores, 'unfreeze'),
    bookCreditRoute(stores, 'credits'),
    bookCreditRoute(stores, 'debits'),
    createKeyRoute(gateway),
    listKeysRoute(stores),
    changeKeyRoute(gateway),
    rotateKeyRoute(gateway),
    revokeKeyRoute(stores),
    createUserRoute(database),
    listUsersRoute(database),
    changeUserRoute(database),
    unbindIdentityRoute(database),
    makeSignInLinkRoute(database),
    createTokenRoute(database),
    listTokensRoute(database),
    showOwnTokenRoute(),
    revokeTokenRoute(database),
    listAuditRoute(database),
    verifyLedgerRoute(stores),
    repairLedgerRoute(stores),
    listShortfallsRoute(database),
    reloadConfigRoute(gateway),
    showConfigRoute(gateway),
    applyConfigRoute(gateway),
    rollBackConfigRoute(gateway),
    listConfigRevisionsRoute(database),
    showConfigRevisionRoute(gateway),
    showConfigStatusRoute(gateway),
    listUpstreamsRoute(gateway),
    showUpstreamRoute(gateway),
    disableUpstreamRoute(gateway),
    enableUpstreamRoute(gateway),
    testUpstreamRoute(gateway),
    recordUpstreamRoute(gateway),
    showNowRoute(gateway),
    showOperatorPageRoute('/operator', page),
    showOperatorPageRoute('/operator/{path...}', page),
    signInOperatorRoute(gateway, times),
    showOperatorSessionRoute(gateway),
    endOperatorSessionRoute(gateway),
  ];
}
