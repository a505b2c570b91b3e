import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const CREDIT_USD = '5.00';

/** The address of the console user. It names the account, because one data folder may have had several accounts and an address belongs to one. */
const emailOf = (accountId) => `quickstart-${accountId.slice(-12)}@localhost`;

/**
 * Returns the demo account and its key: those of an earlier start while both are valid, else new ones. Each step is stored before
 * the next, so that an interrupted start continues where it stopped.
 */
export async function findOrMakeAccount({ url, adminUrl, dataDir, adminToken }) {
  const file = join(dataDir, 'quickstart.json');
  const admin = adminApi(adminUrl, adminToken || readToken(dataDir));
  const kept = read(file);
  const known =
    typeof kept.accountId === 'string' ? await admin(`/accounts/${encodeURIComponent(kept.accountId)}`) : undefined;
  const isNew = known === undefined || !(await isValidKey(url, kept.key));
  const accountId = known === undefined ? (await admin('/accounts', { name: 'quickstart' })).id : kept.accountId;
  if (isNew) {
    write(file, { accountId });
    const credit = { amountUsd: CREDIT_USD, idempotencyKey: 'quickstart', note: 'made by npm run quickstart' };
    await admin(`/accounts/${accountId}/credits`, credit);
    kept.key = (await admin(`/accounts/${accountId}/keys`, { name: 'quickstart' })).key;
    write(file, { accountId, key: kept.key });
  }
  return { accountId, key: kept.key, link: await makeSignInLink(admin, url, accountId), file, isNew };
}

/** Creates a sign-in link at each start, because a link works once and expires after an hour. */
async function makeSignInLink(admin, url, accountId) {
  const { items } = await admin(`/accounts/${accountId}/users?limit=1000`);
  const email = emailOf(accountId);
  // The link makes the password unnecessary, so it is random.
  const password = randomBytes(24).toString('base64url');
  const known = items.find((user) => user.email === email);
  const { id } = known ?? (await admin(`/accounts/${accountId}/users`, { email, password }));
  const { path } = await admin(`/users/${id}/sign-in-link`, {});
  return url + path;
}

/** Returns a function that reads a path of the admin API, or sends a body to it. It returns undefined for what is not there. */
function adminApi(adminUrl, token) {
  return async (path, body) => {
    const method = body === undefined ? 'GET' : 'POST';
    const answer = await fetch(`${adminUrl}/admin/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const json = await answer.json().catch(() => ({}));
    if (answer.ok) return json;
    if (answer.status === 404 && method === 'GET') return undefined;
    const why = json.error?.message ?? 'no reason given';
    const hint = answer.status === 401 ? ' Is ADMIN_TOKEN the one the data folder was made with?' : '';
    throw new Error(`${method} /admin/v1${path} answered ${answer.status}: ${why}.${hint}`);
  };
}

async function isValidKey(url, key) {
  if (typeof key !== 'string') return false;
  const answer = await fetch(`${url}/v1/balance`, { headers: { authorization: `Bearer ${key}` } });
  await answer.arrayBuffer();
  return answer.ok;
}

function readToken(dataDir) {
  const path = join(dataDir, 'admin-token');
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new Error(`The admin token cannot be read from ${path}: ${error.message}`);
  }
}

function read(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) ?? {};
  } catch {
    return {};
  }
}

/** Writes the file whole or not at all, readable only by this user. */
function write(file, value) {
  mkdirSync(join(file, '..'), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, `${JSON.stringify(value)}\n`, { mode: 0o600 });
  chmodSync(`${file}.new`, 0o600);
  renameSync(`${file}.new`, file);
}
