import { expect } from 'chai';
import type { Knex } from 'knex';
import type { Route } from '../../core/api/route';
import { RouteTable } from '../../core/api/route-table';
import type { ErrorCode } from '../../core/base/errors';
import { newId } from '../../core/base/ids';
import type { MemberRole } from '../../core/sign-in/member-roles';
import { beginSession, csrfTokenOf } from '../../core/sign-in/sessions';
import { findUser } from '../../core/sign-in/users';
import { type TestAnswer, toAnswer } from './desk';
import { expectShape } from './documents';
import { ownRoutes } from './own-api';

/**
 * Acts as a browser on the console's page: it keeps the cookie, sends the origin, and repeats the token. Each answer must be one that its route
 * declares.
 */
export class TestBrowser {
  cookie = '';
  csrfToken = '';
  /** The id of the user, if `signedInBrowser` made it. */
  userId = '';
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<TestAnswer> {
    return this.send('GET', path, undefined, headers);
  }

  /** Sends a request. `headers` replace the page's own; an empty one is omitted. */
  async send(method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<TestAnswer> {
    const all: Record<string, string> = {
      cookie: this.cookie,
      ...(method !== 'GET' && { origin: this.#url, 'x-csrf-token': this.csrfToken }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    };
    const response = await fetch(`${this.#url}/console/api${path}`, {
      method,
      headers: Object.fromEntries(Object.entries(all).filter(([, value]) => value !== '')),
      redirect: 'manual',
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const answer = await toAnswer(response);
    expectDeclared(method, path, answer);
    this.#keep(answer);
    return answer;
  }

  async signIn(email: string, password: string): Promise<TestAnswer> {
    return this.send('POST', '/session', { email, password });
  }

  #keep({ headers, body }: TestAnswer): void {
    for (const cookie of headers.getSetCookie()) {
      const [pair = ''] = cookie.split(';');
      this.cookie = pair.endsWith('=') ? '' : pair;
    }
    const token: unknown = (body as { csrfToken?: unknown } | undefined)?.csrfToken;
    if (typeof token === 'string') this.csrfToken = token;
  }
}

/** Errors that every route of the console may have. */
const COMMON_ERRORS: readonly ErrorCode[] = [
  'NOT_SIGNED_IN',
  'FORBIDDEN',
  'INVALID_FIELD',
  'INVALID_JSON',
  'UNSUPPORTED_MEDIA_TYPE',
  'BODY_TOO_LARGE',
  'METHOD_NOT_ALLOWED',
  'INTERNAL_ERROR',
  'DATABASE_UNAVAILABLE',
];

let declared: RouteTable<Route> | undefined;

function declaredRoutes(): RouteTable<Route> {
  if (declared !== undefined) return declared;
  declared = new RouteTable();
  for (const route of ownRoutes()) {
    const isOfConsole = route.listener === 'public' && (route.auth === 'page' || route.auth === 'session');
    if (isOfConsole) declared.add(route.method, route.path, route);
  }
  return declared;
}

/** Asserts that status, error code and JSON body are declared by the route in `answers` and `errors`. */
function expectDeclared(method: string, path: string, { status, body }: TestAnswer): void {
  const [plain = ''] = path.split('?');
  const found = declaredRoutes().find(method, `/console/api${plain}`);
  if (found === undefined || 'allow' in found) return;
  const { answers, errors = [], path: pattern } = found.route;
  const what = `${method} ${pattern} ${status}`;
  const said = answers[status];
  if (status >= 400) {
    const isOfOne: readonly ErrorCode[] = pattern.includes('{') ? ['NOT_FOUND'] : [];
    expect(body.error.code, what).to.be.oneOf([...COMMON_ERRORS, ...isOfOne, ...errors]);
    return;
  }
  if (said === undefined) throw new Error(`${what} is not in the answers of its route: declare it there`);
  if (said.schema === undefined) expect(body, what).to.equal('');
  else if (said.mediaType === undefined) expectShape(said.schema, body, what);
}

/** Makes a browser of a new user, signed in without a password, because checking one is slow. */
export async function signedInBrowser(
  url: string,
  database: Knex,
  accountId: string,
  role: MemberRole = 'owner',
): Promise<TestBrowser> {
  const id = newId();
  const user = { id, account_id: accountId, email: `${id}@example.com`, password_hash: 'none', role };
  await database('users').insert({ ...user, password_changed_at: new Date() });
  const times = { idleMs: 43_200_000, lifetimeMs: 604_800_000 };
  const session = await beginSession(database, await findUser(database, id), 'link', times);
  const browser = new TestBrowser(url);
  browser.cookie = `tollgate-session=${session.token}`;
  browser.csrfToken = csrfTokenOf(session);
  browser.userId = id;
  return browser;
}
