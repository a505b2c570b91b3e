import assert from 'node:assert/strict';
import type { Knex } from 'knex';
import { newId } from '../../../core/base/ids';
import { startRefusedCalls } from '../../../core/calls/refused-calls';
import type { UsageRecord } from '../../../core/calls/usage-record';
import type { Payer } from '../../../core/ledger/ledger';
import { MemoryLedger } from '../../../core/ledger/memory-ledger';
import { keepPartitions } from '../../../core/ledger/outbox/partitions';
import { insertUsage } from '../../../core/ledger/outbox/rows';
import { startShipper } from '../../../core/ledger/outbox/shipper';
import { sumSomeUntil } from '../../../core/records/usage-roll-up';
import { FIRST_TOKEN_BOUNDS_MS, readCells, readSums, type SumFilters } from '../../../core/records/usage-sums';
import { openDatabase } from '../../../core/storage/database';
import { DATABASES, quiet, type TestDatabase } from '../../support/databases';
import { seeded } from '../../support/random';
import { newDatabase } from '../../support/shared';
import { fundedPayer, newPayer, reserveRequest, usageRecord } from '../ledger/ledger-fixture';
import { assertSumsAreExact, FIRST_TOKENS } from './exact-sums';

const HOUR_MS = 3_600_000;
const START_MS = Date.parse('2026-11-03T00:00:00Z');

/** Postgres' code for a lock timeout. */
const LOCK_NOT_AVAILABLE = '55P03';

/** A time after all records of this file. */
const LATER = new Date('2028-01-01');

function rowOf(record: UsageRecord, costE8: bigint, rid: string | null = newId()) {
  return { record: JSON.stringify(record), rid, costE8 };
}

for (const { name, open } of DATABASES) {
  describe(`sums of usage records on ${name}`, () => {
    let test: TestDatabase;
    let database: Knex;

    before(async function () {
      this.timeout(60_000);
      test = await open();
      database = test.database;
      // Sums everything so far, so that triggers must add the records that follow.
      await sumSomeUntil(database, LATER);
    });
    after(() => test.close());

    it('equal the sums of the records while two shippers and writers of refused calls work', async () => {
      const ledger = new MemoryLedger();
      await ledger.open();
      const payers = await Promise.all(Array.from({ length: 6 }, () => fundedPayer(ledger, 100_000n)));
      const shippers = [1, 2].map(() => startShipper({ ledger, database, log: quiet }));
      const refused = [1, 2].map(() => startRefusedCalls({ database, log: quiet, writeEveryMs: 5 }));
      for (let round = 0; round < 15; round += 1) {
        for (const [index, payer] of payers.entries()) {
          const request = reserveRequest(payer, 1_000n);
          await ledger.reserve(request);
          const record = usageRecord(payer, { model: `model-${round % 3}`, firstTokenMs: 10 * round });
          const costE8 = BigInt(100 * round + index);
          await ledger.settle({ ...payer, rid: request.rid, costE8, record: JSON.stringify(record) });
          for (const shipper of shippers) shipper.nudge(payer.accountId);
          for (const each of refused) each.add(usageRecord(payer, { status: 429, errorCode: 'RATE_LIMITED' }));
        }
        await new Promise((wake) => setTimeout(wake, 5));
      }
      await Promise.all(refused.map((each) => each.close()));
      await Promise.all(shippers.map((shipper) => shipper.stop()));
      const [all] = await database('usage_sums').where({ grouped_by: 'none' }).sum('calls as calls');
      assert.equal(String(all?.['calls']), String(3 * 6 * 15));
      await assertSumsAreExact(database);
    });

    it('count a rewritten record once, and add the cost that a record gets with its later reservation', async () => {
      const payer = newPayer();
      const record = usageRecord(payer, { status: 503, errorCode: 'LEDGER_UNAVAILABLE' });
      const other = rowOf(usageRecord(payer), 70n);
      const costOf = async () =>
        (await readSums(database, { account: payer.accountId }, [{ fromMs: -Infinity, toMs: Infinity }]))[0];
      await insertUsage(database, [rowOf(record, 0n, null), other]);
      await insertUsage(database, [rowOf(record, 0n, null), other]);
      assert.deepEqual([(await costOf())?.calls, (await costOf())?.cost_e8], [2n, 70n]);
      await insertUsage(database, [rowOf(record, 30n), other]);
      await insertUsage(database, [rowOf(record, 30n), other]);
      assert.deepEqual([(await costOf())?.calls, (await costOf())?.cost_e8], [2n, 100n]);
      await database('usage_records').where({ request_id: record.requestId }).delete();
      assert.deepEqual([(await costOf())?.calls, (await costOf())?.cost_e8], [1n, 70n]);
      await assertSumsAreExact(database);
    });

    it('are the same as those computed from the records, for any range and filter', async () => {
      const { below: pick } = seeded(7);
      const payer = newPayer();
      const keys = [payer.keyId, newId()];
      const records = Array.from({ length: 400 }, () => {
        const status = [200, 200, 429][pick(3)] ?? 200;
        return {
          costE8: BigInt(pick(1_000)),
          record: usageRecord({ ...payer, keyId: keys[pick(2)] ?? '' } as Payer, {
            createdAt: new Date(START_MS + pick(30 * HOUR_MS)).toISOString(),
            ...{
              model: status === 429 ? undefined : `model-${pick(3)}`,
              modelRequested: 'asked',
              upstream: undefined,
              status,
            },
            ...(status === 200 && { upstream: `upstream-${pick(2)}`, firstTokenMs: pick(200_000) }),
          }),
        };
      });
      await insertUsage(
        database,
        records.map(({ record, costE8 }) => rowOf(record, costE8)),
      );
      const filters: Omit<SumFilters, 'account'>[] = [
        {},
        { key: payer.keyId },
        { model: ['model-1', 'asked'] },
        { upstream: 'upstream-1' },
        { status: 429 },
        { key: payer.keyId, status: 200 },
        { key: payer.keyId, model: ['model-2'] },
      ];
      for (const filter of filters) {
        for (let round = 0; round < 6; round += 1) {
          const marks = Array.from(
            { length: 4 },
            () => START_MS + pick(round % 2 === 0 ? 30 : 1_800) * (round % 2 === 0 ? HOUR_MS : 60_000),
          );
          const [first = 0, ...ends] = [...new Set(marks)].sort((one, two) => one - two);
          const slots = ends.map((toMs, index) => ({ fromMs: ends[index - 1] ?? first, toMs }));
          const foundIn = ({ fromMs, toMs }: { fromMs: number; toMs: number }) =>
            records.filter(({ record }) => {
              const atMs = Date.parse(record.createdAt);
              const { key = record.keyId, upstream = record.upstream, status = record.status } = filter;
              const model = record.model ?? record.modelRequested ?? '';
              const isWanted = filter.model === undefined || filter.model.includes(model);
              return (
                atMs >= fromMs &&
                atMs < toMs &&
                isWanted &&
                record.keyId === key &&
                record.upstream === upstream &&
                record.status === status
              );
            });
          const wanted = { account: payer.accountId, ...filter };
          const sums = await readSums(database, wanted, slots);
          for (const [index, slot] of slots.entries()) {
            const found = foundIn(slot);
            assert.equal(sums[index]?.calls, BigInt(found.length), JSON.stringify([filter, slot]));
            assert.equal(sums[index]?.cost_e8, costOf(found));
            const classes = FIRST_TOKENS.map(() => 0);
            for (const { record } of found) {
              if (record.firstTokenMs === undefined) continue;
              const at = FIRST_TOKEN_BOUNDS_MS.filter((boundMs) => boundMs <= (record.firstTokenMs ?? 0)).length;
              classes[at] = (classes[at] ?? 0) + 1;
            }
            assert.deepEqual(sums[index]?.firstTokens, classes);
          }
          const cells = await readCells(database, wanted, slots, { by: 'model', most: 8 });
          for (const [index, slot] of slots.entries()) {
            const byModel = new Map<string | null, bigint>();
            for (const { record, costE8 } of foundIn(slot)) {
              const model = record.model ?? record.modelRequested ?? null;
              byModel.set(model, (byModel.get(model) ?? 0n) + costE8);
            }
            assert.deepEqual(
              new Map(cells.filter(({ slot: at }) => at === index).map((cell) => [cell.name, cell.cost_e8])),
              byModel,
            );
          }
        }
      }
    });

    it('are dropped together with the months of their records, and no other sums are dropped', async () => {
      const payer = newPayer();
      for (const month of ['2027-01', '2027-04'])
        await keepPartitions({ database, log: quiet }, new Date(`${month}-01`));
      const times = ['2026-10-31T23:59:59Z', '2027-01-31T23:00:00Z', '2027-02-01T00:00:00Z', '2027-03-01T00:00:00Z'];
      const records = times.map((time) => usageRecord(payer, { createdAt: new Date(time).toISOString() }));
      await insertUsage(
        database,
        records.map((record) => rowOf(record, 1n)),
      );
      await keepPartitions({ database, log: quiet, usageMonths: 2 }, new Date('2027-04-01'));
      const left = await database('usage_sums')
        .where({ account_id: payer.accountId, grouped_by: 'none' })
        .orderBy('hour');
      assert.deepEqual(
        left.map(({ hour }) => hour.toISOString().slice(0, 10)),
        ['2027-02-01', '2027-03-01'],
      );
      await assertSumsAreExact(database);
    });
  });
}

function costOf(found: readonly { readonly costE8: bigint }[]): bigint {
  return found.reduce((sum, { costE8 }) => sum + costE8, 0n);
}

describe('a query of usage during the roll-up', () => {
  let database: Knex;
  const { below: pick } = seeded(23);
  const payers = [newPayer(), newPayer()];
  /** The time of the roll-up. Records are written from two hours before it to one hour after. */
  let nowMs = START_MS;
  const timeNearby = () => new Date(nowMs - 2 * HOUR_MS + pick(3 * HOUR_MS)).toISOString();

  before(async function () {
    this.timeout(60_000);
    database = await openDatabase({ databaseUrl: await newDatabase(), dataFolder: '', log: quiet });
    await database('usage_summed').update({ until: new Date(START_MS) });
  });
  after(() => database.destroy());

  async function startOver(): Promise<void> {
    await database('usage_records').delete();
    await database('usage_summed').update({ until: new Date(START_MS) });
  }

  async function writeUntil(isOver: () => boolean): Promise<void> {
    const written: ReturnType<typeof rowOf>[] = [];
    while (!isOver()) {
      const payer = payers[pick(2)] ?? newPayer();
      const batch = Array.from({ length: 1 + pick(8) }, () => {
        const record = usageRecord(payer, { createdAt: timeNearby(), model: `model-${pick(2)}` });
        return rowOf(record, BigInt(pick(100)), pick(4) === 0 ? null : newId());
      });
      const again = written
        .slice(-pick(20))
        .map((row) => ({ ...row, rid: row.rid ?? newId(), costE8: row.costE8 + 1n }));
      await insertUsage(database, pick(2) === 0 ? batch : [...batch, ...again]);
      written.push(...batch);
      const gone = JSON.parse(written[pick(written.length)]?.record ?? '{}').requestId;
      if (pick(5) === 0) await database('usage_records').where({ request_id: gone }).delete();
    }
  }

  async function shipUntil(isOver: () => boolean): Promise<void> {
    const ledger = new MemoryLedger();
    await ledger.open();
    const payer = await fundedPayer(ledger, 10_000_000n);
    payers.push(payer);
    const shippers = [1, 2].map(() => startShipper({ ledger, database, log: quiet, collectMs: 1 }));
    while (!isOver()) {
      const request = reserveRequest(payer, 1_000n);
      await ledger.reserve(request);
      const record = JSON.stringify(usageRecord(payer, { createdAt: timeNearby() }));
      await ledger.settle({ ...payer, rid: request.rid, costE8: BigInt(pick(100)), record });
      for (const shipper of shippers) shipper.nudge(payer.accountId);
      await new Promise((wake) => setTimeout(wake, pick(5)));
    }
    await Promise.all(shippers.map((shipper) => shipper.stop()));
  }

  async function rollUp(): Promise<void> {
    for (let step = 0; step < 150; step += 1) {
      nowMs += pick(30 * 60_000);
      await sumSomeUntil(database, new Date(nowMs), 1 + pick(40)).catch(unlessBusy);
    }
  }

  /** Ignores a lock timeout of a busy machine: the roll-up retries later. */
  function unlessBusy(error: Error & { code?: string }): void {
    if (error.code !== LOCK_NOT_AVAILABLE) throw error;
  }

  /** Asserts in one snapshot that the sums equal the records. */
  async function assertReadExactly(): Promise<void> {
    const payer = payers[pick(payers.length)] ?? newPayer();
    const fromMs = nowMs - pick(10) * HOUR_MS;
    const slot = { fromMs, toMs: [Infinity, fromMs + (1 + pick(6)) * HOUR_MS, fromMs + pick(HOUR_MS)][pick(3)] ?? 0 };
    await database.transaction(
      async (trx) => {
        const [sums] = await readSums(trx, { account: payer.accountId }, [slot]);
        const cells = await readCells(trx, { account: payer.accountId }, [slot], { by: 'model', most: 8 });
        const { rows } = await trx.raw(
          `SELECT count(*) AS calls, coalesce(sum(cost_e8), 0)::bigint AS cost_e8 FROM usage_records
           WHERE account_id = ? AND created_at >= ?::timestamptz AND created_at < ?::timestamptz`,
          [payer.accountId, new Date(slot.fromMs), slot.toMs === Infinity ? 'infinity' : new Date(slot.toMs)],
        );
        assert.deepEqual({ calls: sums?.calls, cost_e8: sums?.cost_e8 }, { ...rows[0] });
        assert.equal(costOf(cells.map((cell) => ({ costE8: cell.cost_e8 }))), rows[0].cost_e8);
      },
      { isolationLevel: 'repeatable read', readOnly: true },
    );
  }

  it('returns the same sums as the records at every moment', async function () {
    this.timeout(60_000);
    let isOver = false;
    const over = () => isOver;
    const readUntilOver = async () => {
      while (!isOver) await assertReadExactly();
    };
    const rolling = rollUp().finally(() => {
      isOver = true;
    });
    await Promise.all([rolling, writeUntil(over), writeUntil(over), shipUntil(over), readUntilOver(), readUntilOver()]);
    await assertSumsAreExact(database);
    while (await sumSomeUntil(database, LATER, 50)) await assertReadExactly();
    await assertSumsAreExact(database);
    const [{ count: records } = { count: 0n }] = await database('usage_records').count();
    const [{ calls } = { calls: 0 }] = await database('usage_sums').where({ grouped_by: 'none' }).sum('calls as calls');
    assert.equal(String(calls), String(records));
  });

  it('returns the same sums as the records even if more records share one time than one roll-up adds', async () => {
    await startOver();
    const [payer = newPayer()] = payers;
    const createdAt = new Date(START_MS + 5).toISOString();
    await insertUsage(
      database,
      [1, 2, 3, 4, 5].map(() => rowOf(usageRecord(payer, { createdAt }), 1n)),
    );
    while (await sumSomeUntil(database, new Date(START_MS + HOUR_MS), 2));
    await assertSumsAreExact(database);
  });
});
