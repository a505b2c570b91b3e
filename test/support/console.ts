import type { Knex } from 'knex';
import { newId } from '../../core/ids';
import { beginSession, csrfTokenOf } from '../../core/sessions';
import { findUser } from '../../core/users';
import { type TestAnswer, toAnswer } from './desk';

/** A browser with the console's page in it: it keeps the cookie, says where requests come from, and repeats the token. */
export class TestBrowser {
  cookie = '';
  csrfToken = '';
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  get(path: string, headers: Record<string, string> = {}): Promise<TestAnswer> {
    return this.send('GET', path, undefined, headers);
  }

  /** `headers` replace the page's own; an empty one is left out. */
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

/** A browser of somebody new, signed in without a password: those take long to check. */
export async function signedInBrowser(url: string, database: Knex, accountId: string): Promise<TestBrowser> {
  const id = newId();
  const user = { id, account_id: accountId, email: `${id}@example.com`, password_hash: 'none' };
  await database('users').insert({ ...user, password_changed_at: new Date() });
  const times = { idleMs: 43_200_000, lifetimeMs: 604_800_000 };
  const session = await beginSession(database, await findUser(database, id), 'link', times);
  const browser = new TestBrowser(url);
  browser.cookie = `tollgate-session=${session.token}`;
  browser.csrfToken = csrfTokenOf(session);
  return browser;
}
