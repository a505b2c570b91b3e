import { pageRoute } from '../../core/console-route';
import { sendJson } from '../../core/http';
import { definePlugin } from '../../core/plugin';
import { DURATION, parseDuration } from '../../core/settings';
import { catalogRoute } from './catalog';
import { keyRoutes } from './keys';
import { identityProvider, OIDC } from './oidc';
import { oidcRoutes } from './oidc-routes';
import { overviewRoute } from './overview';
import { pageRoutes } from './page';
import { signInRoutes } from './sign-in';

/** The console for account owners: docs/console.md. What other plugins show in it they serve themselves. */
export default definePlugin({
  name: 'console',
  summary: 'The web page under /console, signing in to it, and what it shows.',
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      sessionIdle: { ...DURATION, description: 'A session ends this long after its last use.', default: '12h' },
      sessionLifetime: { ...DURATION, description: 'A session ends this long after the sign-in.', default: '168h' },
      proxies: {
        description:
          'How many proxies of yours stand in front, each of which adds the address it was asked from to X-Forwarded-For.',
        type: 'integer',
        minimum: 0,
        maximum: 10,
        default: 0,
      },
      oidc: OIDC,
    },
  },
  routes: ({ sessionIdle, sessionLifetime, proxies, oidc }, gateway) => {
    const { database, ledger, log } = gateway;
    const times = { idleMs: parseDuration(sessionIdle), lifetimeMs: parseDuration(sessionLifetime) };
    const provider =
      oidc === undefined ? undefined : identityProvider(oidc, gateway.egress, parseDuration(oidc.timeout));
    return [
      ...pageRoutes(),
      pageRoute('GET', '/sign-in', async (_visit, _request, response) => {
        const startUrl = '/console/api/oidc/start';
        sendJson(response, 200, {
          password: true,
          oidc: provider === undefined ? null : { name: provider.name, startUrl },
        });
      }),
      ...signInRoutes({ database, times, proxies }),
      ...oidcRoutes({ database, log, times, provider }),
      overviewRoute(gateway),
      catalogRoute(gateway),
      ...keyRoutes({ database, ledger, keys: gateway.keys }),
    ];
  },
});
