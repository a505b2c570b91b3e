import { pageRoutes } from '../../../core/api/built-page';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import type { Membership } from '../../../core/sign-in/membership';
import type { SessionTimes } from '../../../core/sign-in/sessions';
import type { IdentityProvider } from '../oidc';
import { alertRoutes } from './alerts';
import { consoleKeyRoutes } from './keys';
import { finishOidcRoute, startOidcRoute } from './oidc';
import { overviewRoutes } from './overview';
import { signInRoutes } from './sign-in';

interface ConsoleSettings {
  readonly times: SessionTimes;
  readonly passwordSignIn: boolean;
  readonly provider: IdentityProvider | undefined;
  readonly membership: Membership | undefined;
}

/** Lists the console's endpoints; docs/console.md. */
export function consoleRoutes(gateway: PluginGateway, settings: ConsoleSettings): readonly Route[] {
  const { database, log, proxies } = gateway;
  const { times, passwordSignIn, provider, membership } = settings;
  const signIn = { database, times, proxies, insteadOfPasswords: passwordSignIn ? undefined : (provider?.name ?? '') };
  const { ledger, calls } = gateway;
  const oidc = { database, ledger, calls, log, times, proxies, provider, membership };
  return [
    ...pageRoutes('console', 'public', 'The console.'),
    ...signInRoutes(signIn, provider),
    startOidcRoute(oidc),
    finishOidcRoute(oidc),
    ...overviewRoutes(gateway),
    ...consoleKeyRoutes(gateway),
    ...alertRoutes(gateway),
  ];
}
