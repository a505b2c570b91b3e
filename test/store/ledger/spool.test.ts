import assert from 'node:assert/strict';
import fs from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import type { Payer } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { shipShards } from '../../../core/ledger/outbox/ship';
import { recover } from '../../../core/ledger/recovery';
import { createSettler } from '../../../core/ledger/settler';
import { ALL_SHARDS } from '../../../core/ledger/shard';
import { openSpool, type Spool } from '../../../core/ledger/spool/spool';
import { FileOnDisk } from '../../../core/ledger/spool/spool-file';
import { openSpoolFolder } from '../../../core/ledger/spool/spool-folder';
import { DATABASES, quiet, type TestDatabase, temporaryFolder } from '../../support/databases';
import { until } from '../../support/until';
import { keyRequest, newPayer, reserveRequest, usageRecord } from './ledger-fixture';
import { insertCredit, insertPayer, readChain } from './ledger-rows';

describe('the spool of settles on disk', () => {
  let test: TestDatabase;
  let database: Knex;
  let ledger: MemoryLedger;
  let folder: string;
  const closings: (() => Promise<void>)[] = [];

  before(async () => {
    const [postgres] = DATABASES;
    assert.ok(postgres !== undefined);
    test = await postgres.open();
    database = test.database;
  });
  after(() => test.close());
  beforeEach(async () => {
    ledger = new MemoryLedger();
    await ledger.open();
    const temporary = await temporaryFolder();
    closings.push(temporary.remove);
    folder = temporary.path;
  });
  afterEach(async () => {
    for (const close of closings.splice(0).reverse()) await close();
  });

  const open = async ({
    maxBytes,
    ...times
  }: {
    resendAfterMs?: number;
    maxBytes?: number;
    spoolEveryMs?: number;
  } = {}) =>
    openSpool({
      ledger,
      database,
      shipper: { nudge: () => undefined },
      log: quiet,
      folder: await openSpoolFolder(folder),
      times: { spoolEveryMs: 20, resendAfterMs: 0, ...times },
      ...(maxBytes === undefined ? {} : { maxBytes }),
    });
  const openUntilEnd = async (options: Parameters<typeof open>[0] = {}): Promise<Spool> => {
    const spool = await open(options);
    closings.push(() => spool.stop());
    return spool;
  };
  /** Simulates the end of the process: its lock names a process that does not exist. */
  const kill = async () => {
    const dead = JSON.stringify({ token: 'gone', pid: 2 ** 22 + 1, host: hostname() });
    for (const home of await readdir(folder)) await writeFile(join(folder, home, 'lock'), dead);
  };
  const fund = async () => {
    const payer = newPayer();
    const rid = newId();
    await insertPayer(database, payer);
    await insertCredit(database, payer.accountId, rid, 1_000n);
    await ledger.setAccount(payer.accountId, 'active');
    await ledger.setKey(keyRequest(payer));
    await ledger.credit({ accountId: payer.accountId, rid, amountE8: 1_000n });
    return payer;
  };
  const ship = () => shipShards({ ledger, database, log: quiet }, ALL_SHARDS);
  const reserve = async (payer: Payer) => {
    const { rid } = reserveRequest(payer, 400n);
    await ledger.reserve(reserveRequest(payer, 400n, { rid }));
    return { ...payer, rid, record: JSON.stringify(usageRecord(payer)) };
  };
  const files = async () =>
    (await readdir(folder, { recursive: true })).filter((path) => path.endsWith('.spool')).length;
  const amounts = async (payer: Payer) => (await readChain(database, payer.accountId)).map(({ amount }) => amount);

  it('deletes settlements that Postgres has, and leaves an empty folder', async () => {
    const spool = await open({ resendAfterMs: 60_000 });
    const payer = await fund();
    const closing = await reserve(payer);
    await spool.keep({ ...closing, kind: 'settle', costE8: 30n });
    assert.equal(await files(), 1);
    await ledger.settle({ ...closing, costE8: 30n });
    await ship();
    await until('it is forgotten', async () => (await files()) === 0);
    await spool.stop();
    assert.deepEqual(await readdir(folder), []);
  });

  it('sends, once, the settlements that a killed process had kept and not sent', async () => {
    const dying = await open({ spoolEveryMs: 3_600_000 });
    const payer = await fund();
    const closing = await reserve(payer);
    await dying.keep({ ...closing, kind: 'settle', costE8: 30n });
    await kill();
    await openUntilEnd();
    await openUntilEnd();
    await until('it is settled', async () => (await ledger.readAccount(payer.accountId))?.postedE8 === 970n);
    await ship();
    await until('it is forgotten', async () => (await files()) === 0);
    assert.deepEqual(await amounts(payer), [1_000n, -30n]);
  });

  it('does not touch the files of a process that is running', async () => {
    const other = await openUntilEnd({ spoolEveryMs: 3_600_000 });
    const payer = await fund();
    const closing = await reserve(payer);
    await other.keep({ ...closing, kind: 'settle', costE8: 30n });
    const own = await open();
    await own.stop();
    assert.equal(await files(), 1);
    assert.equal((await ledger.readAccount(payer.accountId))?.postedE8, 1_000n);
  });

  it('charges late the settlements that a lost ledger had acknowledged, and none that Postgres has', async () => {
    const payer = await fund();
    const [written, lost] = [await reserve(payer), await reserve(payer)];
    await ledger.settle({ ...written, costE8: 100n });
    await ship();
    await ledger.settle({ ...lost, costE8: 200n });
    ledger = new MemoryLedger();
    await recover({ ledger, database, log: quiet });
    const spool = await openUntilEnd();
    await spool.keep({ ...written, kind: 'settle', costE8: 100n });
    await spool.keep({ ...lost, kind: 'settle', costE8: 200n });
    await until('it is charged', async () => (await ledger.readAccount(payer.accountId))?.postedE8 === 700n);
    await ship();
    await until('all is forgotten', async () => (await files()) === 0);
    assert.deepEqual(await amounts(payer), [1_000n, -100n, -200n]);
    assert.equal((await database('usage_records').where({ account_id: payer.accountId })).length, 2);
  });

  it('charges no more than was acknowledged when it sends a settlement again, even if more money is available then', async () => {
    const payer = await fund();
    const closing = await reserve(payer);
    const rest = reserveRequest(payer, 600n);
    await ledger.reserve(rest);
    await ship();
    const there = () => ledger;
    const current = new Proxy(ledger, { get: (_, name) => Reflect.get(there(), name).bind(there()) });
    const shipper = { nudge: () => undefined };
    const spool = openSpool({
      ledger: current,
      database,
      shipper,
      log: quiet,
      folder: await openSpoolFolder(folder),
      times: { spoolEveryMs: 20, resendAfterMs: 100 },
    });
    closings.push(() => spool.stop());
    const settler = createSettler({ ledger: current, shipper, log: quiet, spool });
    assert.deepEqual(await settler.settle({ ...closing, costE8: 500n }), { chargedE8: 400n, inTime: true });
    ledger = new MemoryLedger();
    await recover({ ledger, database, log: quiet });
    await until('it is charged', async () => (await ledger.readAccount(payer.accountId))?.seq === 2);
    await ship();
    assert.deepEqual(await amounts(payer), [1_000n, -400n]);
  });

  it('writes the record of a call whose release the ledger lost', async () => {
    const payer = await fund();
    await ship();
    const spool = await openUntilEnd();
    const record = usageRecord(payer, { billing: 'released', status: 502 });
    await spool.keep({ ...payer, rid: newId(), record: JSON.stringify(record), kind: 'release', costE8: 0n });
    await until('it is forgotten', async () => (await files()) === 0);
    const rows = await database('usage_records').where({ account_id: payer.accountId });
    assert.deepEqual(
      rows.map((row) => [row.request_id, row.cost_e8, row.billing]),
      [[record.requestId, 0n, 'released']],
    );
  });

  it('reads every complete line of a file whose last line was cut off by a full disk', async () => {
    const file = FileOnDisk.create(join(folder, 'cut.spool'));
    const closing = (record: string) => ({ ...newPayer(), rid: newId(), kind: 'settle' as const, costE8: 1n, record });
    const [first, cut, last] = [closing('{"of":1}'), closing('{"of":2}'), closing('{"of":3}')] as const;
    file.append(first);
    file.flush();
    file.append(cut);
    const { writeSync } = fs;
    fs.writeSync = ((descriptor: number, text: string) => writeSync(descriptor, text.slice(0, -4))) as never;
    try {
      assert.throws(() => file.flush(), /full/);
    } finally {
      fs.writeSync = writeSync;
    }
    file.append(last);
    file.flush();
    assert.deepEqual(await file.lines(), [first, last]);
    assert.deepEqual([...file.waiting.keys()], [first.rid, last.rid]);
    file.close();
  });

  it('has a size limit, above which it accepts no more settlements', async () => {
    const spool = await openUntilEnd({ maxBytes: 500, spoolEveryMs: 3_600_000 });
    const payer = await fund();
    for (let each = 0; each < 10; each++) {
      await spool.keep({ ...payer, rid: newId(), record: 'x'.repeat(200), kind: 'settle', costE8: 1n });
    }
    const [home = ''] = await readdir(folder);
    const { length } = await readdir(join(folder, home));
    assert.equal(length, 2, 'its lock and one file');
  });
});
