import type * as OpenId from 'openid-client';
import { fetch } from 'undici';
import { duration, flag, group, list, number, text } from '../../core/base/setting-schemas';
import type { Settings } from '../../core/base/settings';
import { StartFailure } from '../../core/base/start-failure';
import type { Identity } from '../../core/sign-in/identities';
import type { Destination, Egress } from '../../core/wire/egress';

/** Sign-in with an identity provider: OpenID Connect, authorization code with PKCE, state and nonce. */

export const OIDC = group(
  'Signs users in with an identity provider: a user is bound to the first identity that shows its verified e-mail address.',
  {
    name: text('Its name on the sign-in page.', { minLength: 1, maxLength: 80 }),
    issuer: text('As its documents name it, such as https://accounts.example.', { pattern: '^https?://' }),
    clientId: text('The client id of this gateway at the provider.', { minLength: 1 }),
    clientSecret: group(
      'The environment variable that holds it; absent for a public client.',
      { env: text("The variable's name.", { minLength: 1 }) },
      { required: ['env'] },
    ),
    trustsAddresses: flag('Trusts its e-mail addresses without email_verified, because users cannot choose them.', {
      default: false,
    }),
    allowPrivate: flag('Allows a private address, and requests without TLS.', { default: false }),
    scope: text('What is asked of it, between spaces; some providers send `groups` only for the scope `groups`.', {
      default: 'openid email',
      pattern: '^(.* )?openid( .*)?$',
    }),
    teams: list(
      'The teams that it decides: at each sign-in a user joins those of its groups and leaves the others of this table.',
      {
        type: 'object',
        additionalProperties: false,
        required: ['group', 'team'],
        properties: {
          group: text('A value of the claim `groups`.', { minLength: 1 }),
          team: text('The id of a team.', { pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
        },
      },
      { default: [] },
    ),
    membershipFor: number('The API keys in teams stop this many days after the last sign-in of their member with it.', {
      exclusiveMinimum: 0,
      maximum: 3_650,
      default: 30,
    }),
    timeout: duration('Timeout of each request to the provider.', { default: '10s' }),
  },
  { required: ['name', 'issuer', 'clientId'] },
);

type OidcSettings = Settings<typeof OIDC>;

/** The secrets of one sign-in, which the browser keeps while it visits the identity provider. */
export interface Journey {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface IdentityProvider {
  readonly name: string;
  /** Returns the provider's URL to which the gateway sends the browser, and the secrets of this sign-in. */
  begin(redirectUri: string): Promise<{ readonly url: URL; readonly journey: Journey }>;
  /** Returns the identity that the provider confirms. @throws any error in the provider's answers */
  finish(callback: URL, journey: Journey): Promise<Arrival>;
}

/** The identity that the provider confirmed. */
interface Arrival {
  readonly identity: Identity;
  /** The user's verified e-mail address; undefined if there is none. */
  readonly verifiedEmail: string | undefined;
  /** The groups of which the provider says that the person is a member. */
  readonly groups: readonly string[];
}

/** How long the gateway caches a provider's discovered configuration. */
const KNOWN_FOR_MS = 3_600_000;

/** How long the gateway caches a failed discovery, so that visitors cannot make it repeat the discovery. */
const FAILED_FOR_MS = 60_000;

/** Returns the client of the configured identity provider. @throws StartFailure if the secret's environment variable is not set */
export function identityProvider(settings: OidcSettings, egress: Egress, timeoutMs: number): IdentityProvider {
  // Load the package here, because few gateways have an identity provider.
  const oidc = require('openid-client') as typeof OpenId;
  const { name, issuer, clientId, trustsAddresses, scope, teams } = settings;
  const secret = readSecret(settings);
  let known: { readonly configuration: Promise<OpenId.Configuration>; readonly untilMs: number } | undefined;

  const discover = async () => {
    const options: OpenId.DiscoveryRequestOptions = {
      [oidc.customFetch]: guardedFetch(settings, egress, timeoutMs),
      timeout: timeoutMs / 1_000,
      // Check the signatures of all tokens, including those that come directly from the provider.
      execute: [oidc.enableNonRepudiationChecks, ...(settings.allowPrivate ? [oidc.allowInsecureRequests] : [])],
    };
    const authentication = secret === undefined ? oidc.None() : undefined;
    return oidc.discovery(new URL(issuer), clientId, secret, authentication, options);
  };
  const configured = async () => {
    if (known === undefined || known.untilMs < Date.now()) {
      const asked = { configuration: discover(), untilMs: Date.now() + KNOWN_FOR_MS };
      asked.configuration.catch(() => {
        asked.untilMs = Date.now() + FAILED_FOR_MS;
      });
      known = asked;
    }
    return known.configuration;
  };

  return {
    name,
    begin: async (redirectUri) => {
      const journey = {
        state: oidc.randomState(),
        nonce: oidc.randomNonce(),
        verifier: oidc.randomPKCECodeVerifier(),
      };
      const url = oidc.buildAuthorizationUrl(await configured(), {
        redirect_uri: redirectUri,
        scope,
        state: journey.state,
        nonce: journey.nonce,
        code_challenge: await oidc.calculatePKCECodeChallenge(journey.verifier),
        code_challenge_method: 'S256',
      });
      return { url, journey };
    },
    finish: async (callback, { state, nonce, verifier }) => {
      const configuration = await configured();
      const tokens = await oidc.authorizationCodeGrant(configuration, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new Error('the provider sent no ID token');
      const lacksGroups = teams.length > 0 && claims['groups'] === undefined;
      const info =
        (claims['email'] === undefined || lacksGroups) && configuration.serverMetadata().userinfo_endpoint !== undefined
          ? await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub)
          : claims;
      const said = claims['email'] === undefined ? info : claims;
      const email: unknown = said['email'];
      const isVerified = said['email_verified'] === true || trustsAddresses;
      return {
        identity: { issuer: claims.iss, subject: claims.sub },
        verifiedEmail: typeof email === 'string' && isVerified ? email : undefined,
        groups: groupsOf(claims['groups'] ?? info['groups']),
      };
    },
  };
}

/** Reads the claim `groups`: a list of names, or one name. */
function groupsOf(claim: unknown): readonly string[] {
  return [claim].flat().filter((name) => typeof name === 'string');
}

function readSecret({ clientSecret }: OidcSettings): string | undefined {
  if (clientSecret === undefined) return undefined;
  const secret = process.env[clientSecret.env] ?? '';
  if (secret !== '') return secret;
  throw new StartFailure(`system.config.yml: plugins.console.oidc.clientSecret: ${clientSecret.env} is not set.`);
}

/** Returns a `fetch` that dials each of the provider's hosts through the gateway's egress, which checks addresses. */
function guardedFetch({ allowPrivate }: OidcSettings, egress: Egress, timeoutMs: number): OpenId.CustomFetch {
  const destinations = new Map<string, Destination>();
  return async (address, { headers, method, body, redirect, signal }) => {
    const { origin } = new URL(address);
    let destination = destinations.get(origin);
    if (destination === undefined) {
      const timeouts = { connectMs: timeoutMs, headersMs: timeoutMs, idleMs: timeoutMs };
      // Put a space into the destination's name, because no upstream can have such a name.
      destination = { name: `oidc ${origin}`, url: new URL(origin), allowPrivate, timeouts };
      destinations.set(origin, destination);
    }
    const answer = await fetch(address, {
      method,
      headers,
      redirect,
      dispatcher: egress.pool(destination),
      ...(body !== undefined && body !== null && { body: body as string | URLSearchParams }),
      ...(signal !== undefined && { signal }),
    });
    return answer as unknown as Response;
  };
}
