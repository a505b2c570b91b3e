import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import type { Knex } from 'knex';
import { newId } from '../../../../core/base/ids';
import { MemoryLedger } from '../../../../core/ledger/memory-ledger';
import { findUnwatched } from '../../../../plugins/sandbox/commands/store';
import { request } from '../../../../plugins/sandbox/lifecycle/lifecycle';
import type { Sandbox } from '../../../../plugins/sandbox/lifecycle/sandbox';
import { checkInvariants, readSandboxHolds, StrayHolds } from '../../../../plugins/sandbox/store/audit';
import { Places } from '../../../../plugins/sandbox/store/places';
import { beginOperation, forgetEnded, readOperation } from '../../../../plugins/sandbox/store/queries';
import { toRow } from '../../../../plugins/sandbox/store/rows';
import { openSandboxStore } from '../../../../plugins/sandbox/store/sandbox-store';
import { Ambiguous, type InstanceSummary, type SupplierDriver } from '../../../../plugins/sandbox/suppliers/supplier';
import { instanceName, instanceTags } from '../../../../plugins/sandbox/suppliers/tags';
import { areTooManyGone, cleanUp, insertCleanup, OrphanSweep } from '../../../../plugins/sandbox/worker/orphans';
import { DATABASES, quiet } from '../../../support/databases';
import { accepted, DEFAULT_TIMINGS } from '../simulation/simulate';

const NOW_MS = Date.UTC(2026, 10, 21, 8);
const OLD = new Date(NOW_MS - 600_000);

/** Returns the time in a UUIDv7. */
function at(id: string): Date {
  return new Date(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16));
}

for (const { name, open } of DATABASES) {
  describe(`the database records of sandboxes on ${name}`, function () {
    this.timeout(60_000);
    let database: Knex;
    let close: () => Promise<void>;
    before(async () => {
      ({ database, close } = await open());
    });
    after(() => close());

    const placesOf = (...own: string[]) => {
      const drivers = new Map(own.map((place) => [place, { place }]));
      return new Places({ database, drivers, now: () => NOW_MS, timings: DEFAULT_TIMINGS });
    };
    const store = (places = placesOf()) => openSandboxStore(database, async () => {}, places);

    async function insertSandbox() {
      const payer = { accountId: newId(), keyId: newId() };
      const aggregate = accepted({ seed: 1, trouble: 0, usd: 0n, endAfterMs: 0 }, payer, NOW_MS);
      await database('accounts').insert({ id: payer.accountId, name: 'one' });
      await database('sandboxes').insert(
        toRow({ ...aggregate.sandbox, idempotencyKey: newId(), requestHash: 'x'.repeat(64) }),
      );
      await database('billing_periods').insert(toRow(aggregate.period ?? {}));
      await database('sandbox_operations').insert(toRow(aggregate.operation ?? {}));
      return { id: aggregate.sandbox.id, payer, period: aggregate.period };
    }

    async function insertCommand(sandboxId: string) {
      const id = randomUUID();
      const row = { id, sandboxId, operationId: randomUUID(), background: true, status: 'RUNNING' };
      await database('sandbox_commands').insert(
        toRow({ ...row, startedAtMs: NOW_MS - 60_000, watchedUntilMs: NOW_MS - 30_000 }),
      );
      return id;
    }

    it('return what was written, to the millisecond and the unit', async () => {
      const { id, period } = await insertSandbox();
      const read = await store().load(id);
      assert.deepEqual(read?.period, period);
      assert.equal(read?.sandbox.acceptedAtMs, NOW_MS);
      assert.equal(read?.operation?.type, 'CREATE');
    });

    it('accept a change once: a writer with an older state must read again', async () => {
      const { id } = await insertSandbox();
      const read = await store().load(id);
      assert.ok(read !== undefined);
      const change = request(read, 'TERMINATE', { cause: 'caller', source: 'caller', nowMs: NOW_MS });
      const [one, other] = await Promise.all([
        store().commit(read, change, NOW_MS),
        store().commit(read, change, NOW_MS),
      ]);
      assert.equal([one, other].filter((each) => each !== undefined).length, 1);
      const events = await database('sandbox_events').where({ sandbox_id: id });
      assert.equal(events.length, 1);
      assert.equal((await store().load(id))?.sandbox.stateVersion, 2);
    });

    it('have no unfinished operation of a sandbox after its end', async () => {
      const { id } = await insertSandbox();
      const operationId = await beginOperation({ database, now: () => NOW_MS }, id, { type: 'FILE_WRITE' });
      const read = await store().load(id);
      assert.ok(read !== undefined);
      const event = { type: 'TERMINATED', status: 'SUCCEEDED', source: 'supplier' } as const;
      await store().commit(read, { set: { observedState: 'TERMINATED' }, event }, NOW_MS);
      const operation = await readOperation(database, id, operationId);
      assert.deepEqual([operation?.status, operation?.endedAtMs], ['CANCELLED', NOW_MS]);
    });

    it('write an event for the account when the observed state changes, and for no other change', async () => {
      const { id } = await insertSandbox();
      const commit = async (set: Partial<Sandbox>) => {
        const read = await store().load(id);
        assert.ok(read !== undefined);
        await store().commit(
          read,
          { set, event: { type: 'CHANGED', status: 'SUCCEEDED', source: 'supplier' } },
          NOW_MS,
        );
        return read.sandbox.observedState;
      };
      const before = await commit({ observedState: 'SUSPENDED' });
      await commit({ desiredState: 'RUNNING' });
      await commit({ observedState: 'TERMINATED' });
      const events = await database('events').where({ type: 'sandbox.state' }).orderBy('feed_sequence');
      const own = events.map(({ data }) => data).filter(({ sandboxId }) => sandboxId === id);
      assert.deepEqual(own, [
        { sandboxId: id, state: 'SUSPENDED', previousState: before, message: null },
        { sandboxId: id, state: 'TERMINATED', previousState: 'SUSPENDED', message: null },
      ]);
    });

    it("let a node claim a sandbox that it reaches, and another node's sandbox only while that node is away", async () => {
      const { id } = await insertSandbox();
      await database('sandboxes').where({ id }).update({ place: 'near' });
      const claim = async (places: Places) => {
        const leases = await store(places).claim(NOW_MS, 60_000, 1_000);
        for (const lease of leases) await store().release(lease, undefined, NOW_MS);
        return leases.some((lease) => lease.id === id);
      };
      await placesOf('near').report();
      assert.equal(await claim(placesOf('far')), false);
      assert.equal(await claim(placesOf('far', 'near')), true);
      await database('sandbox_places')
        .where({ id: 'near' })
        .update({ seen_at: new Date(NOW_MS - 91_000) });
      assert.equal(await claim(placesOf('far')), true);
      assert.equal(await placesOf('far').reachOf({ supplier: 'far', place: 'near', createSentAtMs: NOW_MS }), 'silent');
      assert.equal(await placesOf('far').reachOf({ supplier: 'far', place: 'near', createSentAtMs: null }), 'here');
    });

    it('leave commands of a dead process to nodes that reach their sandbox', async () => {
      const { id } = await insertSandbox();
      const command = await insertCommand(id);
      await database('sandboxes').where({ id }).update({ place: 'near' });
      const finds = async (...own: string[]) =>
        (await findUnwatched(database, own, NOW_MS)).some((each) => each.id === command);
      assert.deepEqual([await finds('far'), await finds('near')], [false, true]);
      await database('sandboxes').where({ id }).update({ observed_state: 'FAILED' });
      assert.equal(await finds('far'), true);
    });

    it('let one worker claim a sandbox until the claim expires; afterwards that worker cannot write', async () => {
      const { id } = await insertSandbox();
      const claims = await Promise.all(Array.from({ length: 8 }, () => store().claim(NOW_MS, 60_000, 100)));
      const [lease, ...more] = claims.flat().filter((each) => each.id === id);
      assert.ok(lease !== undefined && more.length === 0);
      const held = await store().load(id);
      assert.deepEqual(
        (await store().claim(NOW_MS + 59_000, 60_000, 100)).filter((each) => each.id === id),
        [],
      );
      const [later] = (await store().claim(NOW_MS + 61_000, 60_000, 100)).filter((each) => each.id === id);
      assert.equal(later?.epoch, lease.epoch + 1);
      assert.ok(held !== undefined);
      assert.equal(await store().commit(held, { set: { attempts: 1 } }, NOW_MS), undefined);
      await store().release(lease, undefined, NOW_MS);
      assert.deepEqual(
        (await store().claim(NOW_MS + 62_000, 60_000, 100)).filter((each) => each.id === id),
        [],
      );
    });

    it('list the open holds, from which a lost ledger is recovered', async () => {
      const { payer, period } = await insertSandbox();
      assert.ok(period !== undefined);
      const holds = await readSandboxHolds(database, [payer.accountId, newId()]);
      assert.deepEqual(holds, [{ ...payer, rid: period.holdId, amountE8: period.reservedE8 }]);
      await database('billing_periods').where({ id: period.id }).update({ status: 'SETTLING' });
      assert.equal((await readSandboxHolds(database, [payer.accountId])).length, 1);
      await database('billing_periods').where({ id: period.id }).update({ status: 'SETTLED', amount_e8: 0, due_e8: 0 });
      assert.deepEqual(await readSandboxHolds(database, [payer.accountId]), []);
    });

    it('are deleted some time after the end, with all dependent rows, and not before', async () => {
      const [kept, ended] = [await insertSandbox(), await insertSandbox()];
      const commandId = randomUUID();
      const end = new Date(NOW_MS);
      const command = { id: commandId, sandbox_id: ended.id, operation_id: newId(), background: false };
      await database('sandbox_commands').insert({ ...command, status: 'EXITED', started_at: end, watched_until: end });
      await database('sandboxes').where({ id: ended.id }).update({ observed_state: 'TERMINATED', ended_at: end });
      await forgetEnded(database, NOW_MS);
      assert.ok((await store().load(ended.id)) !== undefined);
      assert.equal(await forgetEnded(database, NOW_MS + 1), 1);
      assert.equal(await store().load(ended.id), undefined);
      assert.deepEqual(await database('sandbox_commands').where({ id: commandId }), []);
      assert.deepEqual(await database('billing_periods').where({ sandbox_id: ended.id }), []);
      assert.ok((await store().load(kept.id)) !== undefined);
    });

    it("treat none of a supplier's instances as gone if more than five and more than a tenth of them are missing", async () => {
      const supplier = newId();
      for (let gone = 1; gone <= 6; gone += 1) {
        assert.equal(await areTooManyGone(database, supplier), false);
        const { id } = await insertSandbox();
        await database('sandboxes').where({ id }).update({ supplier, supplier_ref: '{}', gone_since: OLD });
      }
      assert.equal(await areTooManyGone(database, supplier), true);
    });

    it("report the ledger's charges once their entries are written", async () => {
      const { period } = await insertSandbox();
      assert.ok(period !== undefined);
      assert.equal(await store().chargeOf(period), undefined);
      const { accountId, keyId, holdId: rid } = period;
      const entry = { accountId, seq: 1, rid, kind: 'charge', keyId, amountE8: -7n, postedE8: 3n, shortfallE8: 2n };
      await database('ledger_entries').insert({ ...toRow(entry), created_at: at(rid) });
      assert.deepEqual(await store().chargeOf(period), { chargedE8: 7n, shortfallE8: 2n });
    });

    it('raise an alarm if they contradict each other', async () => {
      const { id, period } = await insertSandbox();
      const before = await checkInvariants(database, NOW_MS);
      await database('sandboxes').where({ id }).update({ observed_state: 'TERMINATED', total_cost_e8: 7 });
      const after = await checkInvariants(database, NOW_MS);
      for (const name of ['final_with_open_period', 'total_is_not_the_sum_of_periods'] as const) {
        assert.equal(after.get(name), (before.get(name) ?? 0) + 1, name);
      }
      await database('billing_periods')
        .where({ id: period?.id })
        .update({ status: 'SETTLED', amount_e8: 7, due_e8: 7 });
      assert.equal(
        (await checkInvariants(database, NOW_MS)).get('due_is_not_the_sum_of_lines'),
        (before.get('due_is_not_the_sum_of_lines') ?? 0) + 1,
      );
    });

    it('raise an alarm for money held for no sandbox, if two successive checks find it', async () => {
      const ledger = new MemoryLedger();
      await ledger.open();
      const { payer, period } = await insertSandbox();
      assert.ok(period !== undefined);
      await database('account_rates').insert({
        account_id: payer.accountId,
        action: 'sandbox',
        window_started_at: OLD,
        made: 1,
      });
      await ledger.setAccount(payer.accountId, 'active');
      const settings = { rev: 0, name: 'key', allowedModels: undefined };
      await ledger.setKey({ ...payer, hash: 'h', status: 'active', limitE8: undefined, settings });
      await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: 100n });
      const hold = (rid: string, lifetimeMs?: number) =>
        ledger.reserve({
          ...payer,
          rid,
          keyRev: 0,
          amountE8: 1n,
          lifetimeMs,
          facts: lifetimeMs === undefined ? '' : '{}',
        });
      const stray = newId();
      for (const rid of [period.holdId, stray]) await hold(rid);
      await hold(newId(), 60_000);
      const holds = new StrayHolds(database, ledger);
      assert.deepEqual(await holds.look(), []);
      await hold(newId());
      assert.deepEqual(await holds.look(), [stray]);
      await database('billing_periods').where({ id: period.id }).update({ status: 'SETTLED', amount_e8: 0, due_e8: 0 });
      await holds.look();
      assert.deepEqual((await holds.look()).includes(period.holdId), true);
    });

    describe('during the sweep for orphans (instances without a sandbox)', () => {
      const instance = (sandboxId: string, id: string, environment = 'ours'): InstanceSummary => ({
        reference: { id, name: instanceName(sandboxId) },
        state: 'running',
        tags: instanceTags(environment, sandboxId),
        createdAt: OLD,
      });

      /** Makes a supplier that lists the instances with all tags, as every driver must. */
      function supplier(instances: InstanceSummary[], terminated: string[] = []): SupplierDriver {
        return {
          async *list(tags: Record<string, string>) {
            yield* instances.filter((each) => Object.entries(tags).every(([name, value]) => each.tags[name] === value));
          },
          terminate: async ({ id }: { id: string }) => void terminated.push(id),
          inspect: async () => ({ kind: 'gone' }),
        } as unknown as SupplierDriver;
      }

      const sweeper = () =>
        new OrphanSweep({ database, log: quiet, environment: 'ours', timings: { orphanAfterMs: 120_000 } });

      it('allow removing instances that two sweeps found, but none that is new, known or foreign', async () => {
        const { id: known } = await insertSandbox();
        const { id: over } = await insertSandbox();
        await database('sandboxes').where({ id: over }).update({ observed_state: 'TERMINATED' });
        const terminated: string[] = [];
        const driver = supplier(
          [
            instance(known, 'known'),
            instance(over, 'over'),
            instance(newId(), 'nobody'),
            instance(newId(), 'foreign', 'theirs'),
            { ...instance(newId(), 'young'), createdAt: new Date(NOW_MS - 60_000) },
          ],
          terminated,
        );
        const sweep = sweeper();
        assert.deepEqual(await sweep.sweep('one', driver, NOW_MS), { found: 2, stopped: false });
        assert.deepEqual(await database('supplier_cleanup').where({ supplier: 'one' }), []);
        for (let times = 0; times < 2; times += 1) await sweep.sweep('one', driver, NOW_MS + 60_000);
        await cleanUp(database, () => driver, [], NOW_MS + 60_000);
        assert.deepEqual(terminated.sort(), ['nobody', 'over']);
        const rows = await database('supplier_cleanup').where({ supplier: 'one' }).whereNotNull('done_at');
        assert.deepEqual(rows.map(({ reason }) => reason).sort(), ['NO_SANDBOX', 'SANDBOX_ENDED']);
      });

      it('keep an instance that could not be removed until a retry succeeds', async () => {
        const driver = supplier([]);
        const reference = { id: 'stubborn', name: instanceName(newId()) };
        const found = { supplier: 'three', place: null, ref: reference, sandboxId: null, reason: 'NO_SANDBOX' };
        for (let times = 0; times < 2; times += 1) await insertCleanup(database, found, NOW_MS);
        const row = async () => {
          const rows = await database('supplier_cleanup').where({ supplier: 'three' });
          assert.equal(rows.length, 1);
          return rows[0];
        };
        const failing = { ...driver, terminate: async () => Promise.reject(new Ambiguous('no answer')) };
        const lying = { ...driver, inspect: async () => ({ kind: 'found' }) };
        for (const [index, bad] of [undefined, failing, lying].entries()) {
          await cleanUp(database, () => bad as unknown as SupplierDriver, [], NOW_MS + index * 60_000);
          const { attempts, next_at: next, done_at: done } = await row();
          assert.deepEqual([attempts, done], [index + 1, null]);
          assert.ok(next.getTime() > NOW_MS + index * 60_000);
        }
        await cleanUp(database, () => driver, [], NOW_MS + 2 * 60_000);
        assert.equal((await row()).done_at, null, 'not before its time');
        await cleanUp(database, () => driver, [], NOW_MS + 4 * 60_000);
        assert.notEqual((await row()).done_at, null);
        await insertCleanup(database, found, NOW_MS + 4 * 60_000 + 59_000);
        await row();
        await insertCleanup(database, found, NOW_MS + 6 * 60_000);
        assert.equal((await database('supplier_cleanup').where({ supplier: 'three' })).length, 2);
      });

      it('leave an instance to another node if only that node reaches it', async () => {
        const terminated: string[] = [];
        const reference = { id: 'elsewhere', name: instanceName(newId()) };
        const found = { supplier: 'four', place: 'near', ref: reference, sandboxId: null, reason: 'NO_SANDBOX' };
        await insertCleanup(database, found, NOW_MS);
        await cleanUp(database, () => supplier([], terminated), ['far'], NOW_MS);
        assert.deepEqual(terminated, []);
        await cleanUp(database, () => supplier([], terminated), ['near'], NOW_MS);
        assert.deepEqual(terminated, ['elsewhere']);
      });

      it('stop the sweep if it finds too many orphans at once, and ignore an incomplete list', async () => {
        const many = Array.from({ length: 6 }, (_, index) => instance(newId(), `many ${index}`));
        const sweep = sweeper();
        for (let times = 0; times < 3; times += 1) {
          assert.deepEqual(await sweep.sweep('two', supplier(many), NOW_MS), { found: 6, stopped: true });
        }
        assert.deepEqual(await database('supplier_cleanup').where({ supplier: 'two' }), []);
        const broken = {
          // biome-ignore lint/correctness/useYield: it fails before it has anything
          async *list() {
            throw new Error('half a page');
          },
        } as unknown as SupplierDriver;
        await assert.rejects(sweep.sweep('two', broken, NOW_MS));
      });
    });
  });
}
