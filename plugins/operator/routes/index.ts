import { servePage } from '../../../core/api/built-page';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import type { SessionTimes } from '../../../core/sign-in/sessions';
import { applyConfigRoute } from './apply-config';
import { bookCreditRoute } from './book-credit';
import { changeAccountRoute } from './change-account';
import { changeAccountStatusRoute } from './change-account-status';
import { changeKeyRoute } from './change-key';
import { changeUserRoute } from './change-user';
import { createAccountRoute } from './create-account';
import { createKeyRoute } from './create-key';
import { createTokenRoute } from './create-token';
import { createUserRoute } from './create-user';
import { disableUpstreamRoute } from './disable-upstream';
import { enableUpstreamRoute } from './enable-upstream';
import { endOperatorSessionRoute } from './end-operator-session';
import { listAccountsRoute } from './list-accounts';
import { listAuditRoute } from './list-audit';
import { listConfigRevisionsRoute } from './list-config-revisions';
import { listKeysRoute } from './list-keys';
import { listShortfallsRoute } from './list-shortfalls';
import { listTokensRoute } from './list-tokens';
import { listUpstreamsRoute } from './list-upstreams';
import { listUsersRoute } from './list-users';
import { makeSignInLinkRoute } from './make-sign-in-link';
import { recordUpstreamRoute } from './record-upstream';
import { reloadConfigRoute } from './reload-config';
import { repairLedgerRoute } from './repair-ledger';
import { revokeKeyRoute } from './revoke-key';
import { revokeTokenRoute } from './revoke-token';
import { rollBackConfigRoute } from './roll-back-config';
import { rotateKeyRoute } from './rotate-key';
import { showAccountRoute } from './show-account';
import { showConfigRoute } from './show-config';
import { showConfigRevisionRoute } from './show-config-revision';
import { showConfigStatusRoute } from './show-config-status';
import { showNowRoute } from './show-now';
import { showOperatorPageRoute } from './show-operator-page';
import { showOperatorSessionRoute } from './show-operator-session';
import { showOwnTokenRoute } from './show-own-token';
import { showUpstreamRoute } from './show-upstream';
import { signInOperatorRoute } from './sign-in-operator';
import { testUpstreamRoute } from './test-upstream';
import { unbindIdentityRoute } from './unbind-identity';
import { verifyLedgerRoute } from './verify-ledger';

/** Lists the operator's endpoints, one per file; docs/contract.md, section 7. */
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
