/** Uses the project's compiled ledger on Redis, with one account that has money. */
import { createRequire } from 'node:module';
import { join } from 'node:path';

const require = createRequire(join(process.env.DIST_FOLDER, 'bench.js'));
const { newId } = require('./core/base/ids');
const { connectRedis, duplicateRedis } = require('./core/storage/redis');
const { RedisLedger } = require('./core/ledger/redis/redis-ledger');

export const PAYER = { accountId: newId(), keyId: newId() };
export { newId };

const log = { error: console.error, info: console.log };

/** Opens the ledger. `patienceMs` replaces the 250 ms after which it refuses a call; `waitReplicas` is as in system.config.yml. */
export async function openLedger({ patienceMs, waitReplicas = 0 } = {}) {
  const connected = connectRedis(process.env.REDIS_URL, log);
  const redis = patienceMs === undefined ? connected : duplicateRedis(connected, patient(patienceMs));
  redis.on('error', log.error);
  if (redis !== connected) connected.disconnect();
  await new Promise((ready) => redis.once('ready', ready));
  const replicas = { waitReplicas, waitTimeoutMs: 120, onTooFew: 'warn', log };
  const ledger = new RedisLedger({ redis, replicas });
  await ledger.open();
  await fund(ledger, PAYER);
  return ledger;
}

const patient = (patienceMs) => ({ commandTimeout: patienceMs, socketTimeout: 2 * patienceMs });

/** Makes this many more accounts, each with a key and money. */
export async function openAccounts(ledger, count) {
  const payers = Array.from({ length: count }, () => ({ accountId: newId(), keyId: newId() }));
  for (let first = 0; first < count; first += 10)
    await Promise.all(payers.slice(first, first + 10).map((payer) => fund(ledger, payer)));
  return payers;
}

async function fund(ledger, payer) {
  await ledger.setAccount(payer.accountId, 'active');
  await ledger.setKey({
    ...payer,
    hash: payer.keyId.replaceAll('-', '').repeat(2),
    status: 'active',
    limitE8: undefined,
    settings: { rev: 0, name: 'bench', allowedModels: undefined },
  });
  const { outcome } = await ledger.credit({
    accountId: payer.accountId,
    rid: newId(),
    amountE8: 1_000_000n * 100_000_000n,
  });
  if (outcome !== 'credited') throw new Error(`the bench account could not be credited: ${outcome}`);
}

/** Runs the two steps of a call, with a usage record of realistic size. */
export async function reserve(ledger, model, payer = PAYER) {
  const rid = newId();
  const facts = JSON.stringify({ ...RECORD, rid, model });
  const hold = { ...payer, rid, keyRev: 0, amountE8: 150_000n, lifetimeMs: 120_000, facts };
  const { outcome } = await ledger.reserve(hold);
  if (outcome !== 'reserved') throw new Error(`reserve answered ${outcome}`);
  return async (usage) => {
    const costE8 = BigInt(100 * (usage?.prompt_tokens ?? 38) + 500 * (usage?.completion_tokens ?? 61));
    const settled = await ledger.settle({
      ...payer,
      rid,
      costE8,
      record: JSON.stringify({ ...RECORD, rid, model, usage, latencyMs: 12 }),
    });
    if (settled.outcome !== 'settled') throw new Error(`settle answered ${settled.outcome}`);
  };
}

const RECORD = {
  requestId: 'req_0123456789abcdef',
  protocol: 'chat',
  endpoint: 'default',
  strategy: 'quality',
  upstream: 'bench',
  stream: false,
  status: 200,
  attempts: 1,
  createdAt: '2026-11-20T10:00:00.000Z',
};
