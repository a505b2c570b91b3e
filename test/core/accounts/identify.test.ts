import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { type ApiKeys, type CallKey, openApiKeys } from '../../../core/accounts/identify';
import { hashApiKey, makeApiKey } from '../../../core/accounts/key-format';
import { GatewayError } from '../../../core/base/errors';
import { type FindKeyOutcome, type KeyState, LedgerUnavailable } from '../../../core/ledger/ledger';
import { quiet } from '../../support/databases';
import { KEY_RATES } from '../../support/key-rates';
import { NO_PROXIES } from '../../support/proxies';
import { rejection } from '../../support/rejection';

const payer = { accountId: 'account', keyId: 'key' };
const settings = { rev: 0, name: '', allowedModels: undefined };

function requestWith(...rawHeaders: string[]): IncomingMessage {
  const request = new IncomingMessage(new Socket());
  request.rawHeaders = rawHeaders;
  return request;
}

/** Identifies a request with these headers. It rejects where `identify` throws. */
async function identify(keys: ApiKeys, ...rawHeaders: string[]): Promise<CallKey> {
  return keys.identify(requestWith(...rawHeaders));
}

/** Makes API keys over a ledger that counts its lookups. */
function keysOver(
  known: ReadonlyMap<string, FindKeyOutcome>,
  state?: Partial<KeyState>,
  leastRemembered = 10,
  now: () => number = Date.now,
) {
  const asked: string[] = [];
  let reads = 0;
  const ledger = {
    findKey: async (hash: string) => {
      asked.push(hash);
      return known.get(hash) ?? ({ outcome: 'unknown' } as const);
    },
    readKey: async () => {
      reads += 1;
      return state as KeyState | undefined;
    },
    countRefused: async () => {
      asked.push('count');
      return { outcome: 'rate_limited', retryAfterMs: 1_500 } as const;
    },
    countRequest: async () => ({ outcome: 'counted' }) as const,
  };
  const keys = openApiKeys({
    ledger,
    rates: KEY_RATES,
    log: quiet,
    proxies: NO_PROXIES,
    leastRemembered,
    now,
  });
  return { asked, keys, reads: () => reads };
}

function known(key: string, keyId = 'key'): [string, FindKeyOutcome] {
  return [hashApiKey(key), { outcome: 'found', accountId: 'account', keyId }];
}

async function code(promise: Promise<unknown>): Promise<string> {
  const error = await rejection(promise);
  assert.ok(error instanceof GatewayError, String(error));
  return error.code;
}

describe('API keys', () => {
  const key = makeApiKey();
  const other = makeApiKey();
  const unknown = makeApiKey();
  const { keys, asked } = keysOver(new Map([known(key), known(other, 'other')]));

  for (const headers of [
    ['x-api-key', key],
    ['X-API-Key', key],
    ['svc-key', key],
    ['Authorization', `Bearer ${key}`],
    ['authorization', `bEARER ${key}`],
    ['x-api-key', key, 'authorization', `Bearer ${key}`, 'SVC-KEY', key],
    ['x-api-key', key, 'x-api-key', key],
    ['x-api-key', 'sk-of-another-service', 'authorization', `Bearer ${key}`],
    ['x-api-key', key, 'authorization', 'Basic abc'],
  ]) {
    it(`are read from these headers of a request: ${headers.filter((_, index) => index % 2 === 0).join(' and ')}`, async () => {
      const shown = { hash: hashApiKey(key), address: '' };
      assert.deepEqual(await keys.identify(requestWith(...headers)), { ...payer, settings, shown });
    });
  }

  it('are looked up in the ledger once and then cached', async () => {
    await keys.identify(requestWith('x-api-key', key));
    assert.equal(asked.length, 1);
  });

  for (const [what, ...headers] of [
    ['are missing'],
    ['are empty', 'x-api-key', ''],
    ['are shown without a scheme', 'authorization', key],
    ['are shown with another scheme', 'authorization', `Basic ${key}`],
    ['differ between two headers', 'x-api-key', key, 'authorization', `Bearer ${other}`],
    ['differ in one header given twice', 'x-api-key', key, 'x-api-key', other],
    ['differ in two authorization headers', 'authorization', `Bearer ${key}`, 'authorization', `Bearer ${other}`],
    ['stand beside the same key without a scheme', 'x-api-key', key, 'authorization', key],
    ['stand beside a malformed one', 'x-api-key', key, 'authorization', 'Bearer sk-svc-1'],
    ['have a space before them', 'x-api-key', ` ${key}`],
    ['are of another service', 'x-api-key', 'sk-of-another-service'],
    ['have a space inside', 'x-api-key', `${key.slice(0, 20)} ${key.slice(21)}`],
    ['have a wrong checksum', 'x-api-key', `${key.slice(0, -1)}${key.endsWith('0') ? '1' : '0'}`],
    ['are unknown', 'x-api-key', unknown],
  ] as string[][]) {
    it(`are refused with 401 when they ${what}`, async () => {
      const error = await rejection(identify(keys, ...headers));
      assert.ok(error instanceof GatewayError);
      assert.equal(error.status, 401);
      assert.equal(error.message, 'The API key is missing, malformed, unknown or revoked.');
    });
  }

  it('are refused without a ledger lookup when they are malformed', async () => {
    const counted = keysOver(new Map());
    await rejection(identify(counted.keys, 'x-api-key', `${key.slice(0, -6)}000000`));
    assert.deepEqual(counted.asked, []);
  });

  describe('API keys that are unknown', () => {
    const ask = (over: ReturnType<typeof keysOver>, shown = key) => identify(over.keys, 'x-api-key', shown);

    it('are looked up once in 5 s, and are then found if another node has created them', async () => {
      let nowMs = 0;
      const table = new Map<string, FindKeyOutcome>();
      const over = keysOver(table, undefined, 10, () => nowMs);
      for (let call = 0; call < 100; call += 1) assert.equal(await code(ask(over)), 'INVALID_API_KEY');
      assert.equal(over.asked.length, 1);
      table.set(...known(key));
      nowMs = 5_000;
      await ask(over);
      assert.equal(over.asked.length, 2);
    });

    it('are looked up again when the clock was set back', async () => {
      let nowMs = 3_600_000;
      const over = keysOver(new Map(), undefined, 10, () => nowMs);
      await code(ask(over));
      nowMs = 0;
      await code(ask(over));
      assert.equal(over.asked.length, 2);
    });

    it('are found at once when this node itself creates them', async () => {
      const table = new Map<string, FindKeyOutcome>();
      const over = keysOver(table);
      assert.equal(await code(ask(over)), 'INVALID_API_KEY');
      table.set(...known(key));
      over.keys.made(key);
      await ask(over);
    });

    it('are not cached as unknown while the ledger is being filled', async () => {
      const table = new Map<string, FindKeyOutcome>([[hashApiKey(key), { outcome: 'not_ready' }]]);
      const over = keysOver(table);
      assert.equal(await code(ask(over)), 'LEDGER_UNAVAILABLE');
      table.set(...known(key));
      await ask(over);
    });
  });

  it("add a refused call to the ledger's count only if the key has a limit of calls per minute", async () => {
    const plain = keysOver(new Map(), { status: 'active', settings });
    await plain.keys.countCall({ ...payer, settings });
    assert.deepEqual(plain.asked, []);
    const limited = keysOver(new Map(), { status: 'active', settings, callsPerMinute: 1 });
    const error = await rejection(limited.keys.countCall({ ...payer, settings }));
    assert.ok(error instanceof GatewayError);
    assert.deepEqual([error.code, error.options.retryAfterSeconds], ['KEY_RATE_LIMITED', 2]);
  });

  it('are refused with 503 and Retry-After when the ledger does not answer', async () => {
    const down = async () => {
      throw new LedgerUnavailable('no answer');
    };
    const dark = openApiKeys({
      ledger: { findKey: down, readKey: down, countRefused: down, countRequest: down },
      rates: KEY_RATES,
      log: quiet,
      proxies: NO_PROXIES,
    });
    for (const question of [identify(dark, 'x-api-key', key), dark.confirm({ ...payer, settings })]) {
      const error = await rejection(question);
      assert.ok(error instanceof GatewayError);
      assert.equal(error.code, 'LEDGER_UNAVAILABLE');
      assert.equal(error.options.retryAfterSeconds, 1);
    }
  });

  it('are confirmed by the ledger only while they are active', async () => {
    const newer = { rev: 3, name: 'app', allowedModels: ['large'] };
    const active = keysOver(new Map(), { status: 'active', settings: newer }).keys;
    assert.deepEqual((await active.confirm({ ...payer, settings })).settings, newer);
    assert.equal(
      await code(keysOver(new Map(), { status: 'revoked' }).keys.confirm({ ...payer, settings })),
      'INVALID_API_KEY',
    );
    assert.equal(await code(keysOver(new Map()).keys.confirm({ ...payer, settings })), 'INVALID_API_KEY');
  });

  it('use newer settings from the next call on, and never older settings again', async () => {
    const { keys: fresh } = keysOver(new Map([known(key)]));
    const first = await fresh.identify(requestWith('x-api-key', key));
    const newer = { rev: 2, name: 'app', allowedModels: ['large'] };
    assert.deepEqual(fresh.remember(first, newer), { ...first, settings: newer });
    assert.deepEqual(fresh.remember(first, { rev: 1, name: 'old', allowedModels: undefined }).settings, newer);
    assert.deepEqual((await fresh.identify(requestWith('x-api-key', key))).settings, newer);
  });

  describe('API keys that this node knows to be blocked', () => {
    const access = (expiresAtMs: number) => ({
      rev: 1,
      name: 'app',
      allowedModels: undefined,
      access: { expiresAtMs },
    });
    const ask = (of: ReturnType<typeof keysOver>) => identify(of.keys, 'x-api-key', key);

    it('are refused without a ledger lookup for each call', async () => {
      const expired = access(Date.now() - 1);
      const over = keysOver(new Map([known(key)]), { status: 'active', settings: expired });
      const first = await ask(over);
      assert.throws(() => over.keys.remember(first, expired), { code: 'API_KEY_EXPIRED' });
      for (let call = 0; call < 10; call += 1) assert.equal(await code(ask(over)), 'API_KEY_EXPIRED');
      assert.equal(over.reads(), 0);
    });

    it('are looked up again when the cached settings are old, because an operator may have lifted the block', async () => {
      const allowed = access(Date.now() + 60_000);
      let nowMs = Date.now();
      const state = { status: 'active', settings: allowed } as const;
      const over = keysOver(new Map([known(key)]), state, 10, () => nowMs);
      over.keys.remember(await ask(over), allowed);
      nowMs += 60_000;
      Object.assign(state, { settings: { ...access(nowMs + 60_000), rev: 2 } });
      assert.equal((await ask(over)).settings.rev, 2);
      assert.equal(over.reads(), 1);
    });
  });
});
