import { servePage } from '../../../core/api/built-page';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import type { SessionTimes } from '../../../core/sign-in/sessions';
import type { IdentityProvider } from '../oidc';
import { changeKeyRoute, createKeyRoute, listKeysRoute, revokeKeyRoute, rotateKeyRoute, showKeyRoute } from './keys';
import { finishOidcRoute, startOidcRoute } from './oidc';
import { showCatalogRoute, showOverviewRoute } from './overview';
import { showPageRoute } from './show-page';
import {
  changePasswordRoute,
  endAllSessionsRoute,
  endSessionRoute,
  listSignInWaysRoute,
  showSessionRoute,
  signInWithLinkRoute,
  signInWithPasswordRoute,
} from './sign-in';

interface ConsoleSettings {
  readonly times: SessionTimes;
  readonly passwordSignIn: boolean;
  readonly provider: IdentityProvider | undefined;
}

/** Lists the console's endpoints; docs/console.md. */
export function consoleRoutes(gateway: PluginGateway, settings: ConsoleSettings): readonly Route[] {
  const { database, ledger, calls, log, proxies, keys } = gateway;
  const { times, passwordSignIn, provider } = settings;
  const stores = { database, ledger, calls };
  const signIn = { database, times, proxies, insteadOfPasswords: passwordSignIn ? undefined : provider?.name };
  const oidc = { database, log, times, proxies, provider };
  return [
    ...pageRoutes(),
    listSignInWaysRoute({ passwordSignIn, provider }),
    signInWithPasswordRoute(signIn),
    signInWithLinkRoute(signIn),
    showSessionRoute(signIn),
    endSessionRoute(signIn),
    endAllSessionsRoute(signIn),
    changePasswordRoute(signIn),
    startOidcRoute(oidc),
    finishOidcRoute(oidc),
    showOverviewRoute(gateway),
    showCatalogRoute(gateway),
    listKeysRoute(stores),
    showKeyRoute(stores),
    createKeyRoute({ ...stores, keys }),
    changeKeyRoute(stores),
    rotateKeyRoute({ ...stores, keys }),
    revokeKeyRoute(stores),
  ];
}

/** Serves the page that is built into `folder`, at all of its paths. */
export function pageRoutes(folder?: string): readonly Route[] {
  const handle = servePage('console', folder);
  return [showPageRoute('/console', handle), showPageRoute('/console/{path...}', handle)];
}
