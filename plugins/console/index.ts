import { duration, flag } from '../../core/base/setting-schemas';
import { parseDuration } from '../../core/base/settings';
import { StartFailure } from '../../core/base/start-failure';
import { definePlugin } from '../../core/gateway/plugin';
import { identityProvider, OIDC } from './oidc';
import { consoleRoutes } from './routes';

const NO_WAY_IN =
  'system.config.yml: plugins.console.passwordSignIn: false needs an identity provider, because otherwise no user can sign in: set plugins.console.oidc, or remove passwordSignIn.';

/** The console for account owners: docs/console.md. Other plugins serve the data that they show in the console. */
export default definePlugin({
  contract: 'plugin/1',
  name: 'console',
  summary: 'The web page under /console, its sign-in and its API.',
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      sessionIdle: duration('A session ends this long after its last use.', { default: '12h' }),
      sessionLifetime: duration('A session ends this long after the sign-in.', { default: '168h' }),
      oidc: OIDC,
      passwordSignIn: flag('Whether people may sign in with a password; false needs `oidc`.', { default: true }),
    },
  },
  routes: ({ sessionIdle, sessionLifetime, oidc, passwordSignIn }, gateway) => {
    const times = { idleMs: parseDuration(sessionIdle), lifetimeMs: parseDuration(sessionLifetime) };
    const provider =
      oidc === undefined ? undefined : identityProvider(oidc, gateway.egress, parseDuration(oidc.timeout));
    if (!passwordSignIn && provider === undefined) throw new StartFailure(NO_WAY_IN);
    const membership = oidc && { teams: oidc.teams, forMs: oidc.membershipFor * 86_400_000 };
    return consoleRoutes(gateway, { times, passwordSignIn, provider, membership });
  },
});
