import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { listen } from './serve';

/** The user and the outcome of the next sign-in at the provider. */
interface Person {
  /** Claims of the ID token; `sub` defaults to `person`. */
  readonly claims: Readonly<Record<string, unknown>>;
  /** Whether only the userinfo endpoint has more than `sub`. */
  readonly onlyUserInfo?: boolean;
  /** Whether the user refuses the sign-in. */
  readonly refuses?: boolean;
  /** Whether an unpublished key signs the token. */
  readonly forged?: boolean;
  /** Replaces claims that the provider sets: iss, aud, exp, nonce. */
  readonly instead?: Readonly<Record<string, unknown>>;
}

export interface TestProvider {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  person: Person;
  /** Follows the browser to the provider and returns the address to which it sends the browser back. */
  visit(authorizationUrl: string): Promise<URL>;
  close(): Promise<void>;
}

interface Grant {
  readonly redirectUri: string;
  readonly challenge: string;
  readonly nonce: string;
  readonly person: Person;
}

/** Starts an OpenID provider: discovery, authorization code with PKCE, signed ID tokens, userinfo. It validates requests strictly. */
export async function startProvider(): Promise<TestProvider> {
  const keys = [
    generateKeyPairSync('rsa', { modulusLength: 2048 }),
    generateKeyPairSync('rsa', { modulusLength: 2048 }),
  ];
  const clientId = 'tollgate';
  const clientSecret = 'secret of the client';
  const grants = new Map<string, Grant>();
  const tokens = new Map<string, Person>();
  let person: Person = { claims: {} };

  const idToken = ({ nonce, person: { claims, onlyUserInfo, forged, instead } }: Grant) => {
    const nowSeconds = Math.floor(Date.now() / 1_000);
    const sub = claims['sub'] ?? 'person';
    const own = { iss: server.url, aud: clientId, sub, iat: nowSeconds, exp: nowSeconds + 60, nonce };
    const key = keys[forged === true ? 1 : 0]?.privateKey as KeyObject;
    return jwt({ ...own, ...(onlyUserInfo === true ? {} : claims), ...instead }, key);
  };

  const authorize = (query: URLSearchParams) => {
    const back = new URL(query.get('redirect_uri') ?? '');
    for (const [name, value] of [
      ['client_id', clientId],
      ['response_type', 'code'],
      ['code_challenge_method', 'S256'],
    ] as const) {
      if (query.get(name) !== value) throw new Error(`${name} is ${query.get(name)}`);
    }
    back.searchParams.set('state', query.get('state') ?? '');
    if (person.refuses === true) back.searchParams.set('error', 'access_denied');
    else {
      const code = randomBytes(16).toString('hex');
      grants.set(code, {
        redirectUri: query.get('redirect_uri') ?? '',
        challenge: query.get('code_challenge') ?? '',
        nonce: query.get('nonce') ?? '',
        person,
      });
      back.searchParams.set('code', code);
    }
    return back;
  };

  const grantOf = (body: URLSearchParams, authorization: string | undefined): Grant | undefined => {
    const shown = Buffer.from((authorization ?? '').replace(/^Basic /, ''), 'base64').toString();
    const inHeader = shown === `${clientId}:${encodeURIComponent(clientSecret).replaceAll('%20', '+')}`;
    if (!inHeader && body.get('client_secret') !== clientSecret) return undefined;
    const grant = grants.get(body.get('code') ?? '');
    grants.delete(body.get('code') ?? '');
    const verifier = createHash('sha256')
      .update(body.get('code_verifier') ?? '')
      .digest('base64url');
    return grant?.challenge === verifier && grant.redirectUri === body.get('redirect_uri') ? grant : undefined;
  };

  const answer = async (request: IncomingMessage): Promise<[status: number, body: unknown, location?: string]> => {
    const { pathname, searchParams } = new URL(request.url ?? '/', server.url);
    switch (pathname) {
      case '/.well-known/openid-configuration':
        return [200, metadata(server.url)];
      case '/jwks':
        return [
          200,
          { keys: [{ ...keys[0]?.publicKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256', kid: 'one' }] },
        ];
      case '/authorize':
        return [302, {}, authorize(searchParams).href];
      case '/token': {
        const grant = grantOf(new URLSearchParams(await textOf(request)), request.headers.authorization);
        if (grant === undefined) return [400, { error: 'invalid_grant' }];
        const token = randomBytes(16).toString('hex');
        tokens.set(token, grant.person);
        return [200, { access_token: token, token_type: 'Bearer', expires_in: 60, id_token: idToken(grant) }];
      }
      case '/userinfo': {
        const known = tokens.get((request.headers.authorization ?? '').replace(/^Bearer /, ''));
        return known === undefined ? [401, {}] : [200, { sub: 'person', ...known.claims }];
      }
      default:
        return [404, {}];
    }
  };

  const server = await listen((request, response) => {
    answer(request).then(
      ([status, body, location]) => {
        response.writeHead(status, { 'content-type': 'application/json', ...(location !== undefined && { location }) });
        response.end(JSON.stringify(body));
      },
      (error: unknown) => {
        response.writeHead(500);
        response.end(String(error));
      },
    );
  });

  return {
    url: server.url,
    clientId,
    clientSecret,
    get person() {
      return person;
    },
    set person(next) {
      person = next;
    },
    visit: async (authorizationUrl) => {
      const response = await fetch(authorizationUrl, { redirect: 'manual' });
      const location = response.headers.get('location');
      if (location === null) throw new Error(`the provider answered ${response.status}: ${await response.text()}`);
      return new URL(location);
    },
    close: () => server.close(),
  };
}

function metadata(url: string): object {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    userinfo_endpoint: `${url}/userinfo`,
    jwks_uri: `${url}/jwks`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    code_challenge_methods_supported: ['S256'],
  };
}

function jwt(claims: object, key: KeyObject): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const signed = `${part({ alg: 'RS256', kid: 'one' })}.${part(claims)}`;
  return `${signed}.${sign('sha256', Buffer.from(signed), key).toString('base64url')}`;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
