import { randomBytes, scryptSync } from 'node:crypto';
import type { Knex } from 'knex';
import { openApiKeys } from '../../core/accounts/identify';
import { confirmedKey } from '../../core/api/router';
import { newId } from '../../core/base/ids';
import { compileCheck } from '../../core/base/settings';
import { openSessionIds } from '../../core/calls/session-ids';
import { buildCatalog } from '../../core/catalog/catalog';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { UpstreamHealth } from '../../core/health/health';
import type { Ledger } from '../../core/ledger/ledger';
import { MemoryLedger } from '../../core/ledger/memory-ledger';
import { readTagStates } from '../../core/ledger/scope-rows';
import { signedIn } from '../../core/sign-in/console-requests';
import consolePlugin from '../../plugins/console';
import invoices from '../../plugins/invoices';
import models from '../../plugins/models';
import operator from '../../plugins/operator';
import usage from '../../plugins/usage';
import { DATABASES, quiet } from './databases';
import { KEY_RATES } from './key-rates';
import { NO_PROXIES } from './proxies';
import { serveRoutes } from './serve';

export const PASSWORD = 'correct horse battery';

/** The hash of that password with a thousandth of the usual work. A stored hash contains its cost. */
const CHEAP_HASH = cheapHash();

function cheapHash(): string {
  const salt = randomBytes(16);
  const hash = scryptSync(PASSWORD, salt, 32, { N: 2 ** 7, r: 8, p: 1 });
  const encode = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '');
  return `$scrypt$ln=7,r=8,p=1$${encode(salt)}$${encode(hash)}`;
}

export interface TestAnswer {
  readonly status: number;
  readonly headers: Headers;
  // Tests read what they expect; a wrong shape fails there.
  // biome-ignore lint/suspicious/noExplicitAny: the bodies of all endpoints
  readonly body: any;
}

export interface TestDesk {
  readonly database: Knex;
  readonly ledger: Ledger;
  readonly adminUrl: string;
  readonly publicUrl: string;
  admin(method: string, path: string, body?: unknown): Promise<TestAnswer>;
  /** Calls the public listener with an API key. */
  get(path: string, apiKey: string): Promise<TestAnswer>;
  /** Makes a user of an account who signs in with `PASSWORD`. Tests about setting a password create their user through the API. */
  person(accountId: string): Promise<{ userId: string; email: string }>;
  /** Makes an account with a key, and with money if there is an amount. */
  customer(amountUsd?: string): Promise<{ accountId: string; keyId: string; apiKey: string }>;
  close(): Promise<void>;
}

/** Serves plugins and the console on real servers, with a real database and the embedded ledger. */
export async function openDesk(
  name: 'Postgres' | 'PGlite',
  {
    wrap = (ledger) => ledger,
    catalog = buildCatalog([]),
    egress,
    settings = {},
    pipelines = [],
  }: {
    wrap?: (ledger: Ledger) => Ledger;
    catalog?: PluginGateway['catalog'];
    egress?: PluginGateway['egress'];
    settings?: object;
    pipelines?: PluginGateway['configuration']['pipelines'];
  } = {},
): Promise<TestDesk> {
  const opened = await DATABASES.find((each) => each.name === name)?.open();
  if (opened === undefined) throw new Error(`no database ${name}`);
  const { database } = opened;
  const memory = new MemoryLedger({ readTags: (scopes) => readTagStates(database, scopes) });
  await memory.open();
  const ledger = wrap(memory);
  const keys = openApiKeys({ ledger, log: quiet, proxies: NO_PROXIES, rates: KEY_RATES });
  const configuration = { pipelines, catalog };
  const health = new UpstreamHealth();
  const gateway = {
    database,
    ledger,
    calls: ledger,
    keys,
    health,
    egress,
    catalog,
    configuration,
    proxies: NO_PROXIES,
    webhookRules: { allowPrivate: false },
    sessionIds: await openSessionIds(database),
    log: quiet,
  } as object as PluginGateway;
  const routes = [operator, invoices, usage, models, consolePlugin].flatMap((plugin) => {
    const checked = compileCheck(plugin.schema)(plugin === consolePlugin ? settings : {});
    if ('problems' in checked) throw new Error(JSON.stringify(checked.problems));
    return plugin.routes?.(checked.value, gateway) ?? [];
  });
  const adminServer = await serveRoutes(routes.filter((route) => route.listener === 'admin'));
  const publicServer = await serveRoutes(
    routes.filter((route) => route.listener === 'public'),
    { identify: confirmedKey(keys), signedIn: signedIn(database) },
  );

  async function admin(method: string, path: string, body?: unknown): Promise<TestAnswer> {
    const sent =
      body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
    return toAnswer(await fetch(`${adminServer.url}/admin/v1${path}`, { method, ...sent }));
  }

  let credits = 0;
  let people = 0;
  return {
    database,
    ledger,
    adminUrl: adminServer.url,
    publicUrl: publicServer.url,
    admin,
    get: async (path, apiKey) => toAnswer(await fetch(publicServer.url + path, { headers: { 'x-api-key': apiKey } })),
    customer: async (amountUsd) => {
      const { body: account } = await admin('POST', '/accounts', { name: 'customer' });
      const { body: key } = await admin('POST', `/accounts/${account.id}/keys`, { name: 'first' });
      credits += 1;
      const credit = { amountUsd, idempotencyKey: `credit-${credits}` };
      if (amountUsd !== undefined) await admin('POST', `/accounts/${account.id}/credits`, credit);
      return { accountId: account.id, keyId: key.id, apiKey: key.key };
    },
    person: async (accountId) => {
      people += 1;
      const email = `person-${people}@example.com`;
      const userId = newId();
      const user = { id: userId, account_id: accountId, email, password_hash: CHEAP_HASH };
      await database('users').insert({ ...user, password_changed_at: new Date() });
      return { userId, email };
    },
    close: async () => {
      await adminServer.close();
      await publicServer.close();
      await opened.close();
    },
  };
}

export async function toAnswer(response: Response): Promise<TestAnswer> {
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
}
