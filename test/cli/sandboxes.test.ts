import { strict as assert } from 'node:assert';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { newId } from '../../core/base/ids';
import { instanceName, instanceTags } from '../../plugins/sandbox/suppliers/tags';
import { operate } from '../support/command-line';
import { startGateway, type TestGateway } from '../support/gateway';
import {
  type AnyRecord,
  createSandbox,
  creation,
  SANDBOX_GATEWAY,
  SMALL_ID,
  terminate,
  waitForState,
} from '../support/sandboxes';
import { until } from '../support/until';

const ENVIRONMENT = 'tests-of-the-command-line';

describe('tollgate sandboxes', function () {
  this.timeout(120_000);
  let gateway: TestGateway;
  let customer: { readonly accountId: string; readonly key: string };
  let running: AnyRecord;
  let ended: AnyRecord;

  before(async () => {
    const times = { environment: ENVIRONMENT, orphansEvery: '300ms', orphanAfter: '1s' };
    gateway = await startGateway({
      ...SANDBOX_GATEWAY,
      plugins: { sandbox: { ...SANDBOX_GATEWAY.plugins.sandbox, ...times } },
    });
    customer = await gateway.newCustomer('10');
    const other = await createSandbox(gateway, customer.key, creation('ended'));
    ended = await terminate(gateway, customer.key, other.id);
    const { id } = await createSandbox(gateway, customer.key, creation('runs', { metadata: { order: 'private' } }));
    running = await waitForState(gateway, customer.key, id, 'RUNNING');
  });
  after(() => gateway?.stop());

  const tollgate = (args: readonly string[], elsewhere: { adminUrl?: string; adminToken?: string } = {}) =>
    operate({ adminUrl: gateway.adminUrl, adminToken: gateway.adminToken, ...elsewhere }, ['sandboxes', ...args]);
  const json = async (...args: string[]) => {
    const { status, out, notes } = await tollgate(['--json', ...args]);
    assert.equal(status, 0, notes);
    return JSON.parse(out);
  };

  it('list prints active sandboxes as a table with account, offering, cost and the time until which each is paid', async () => {
    const { status, out, notes } = await tollgate(['list']);
    assert.equal(status, 0, notes);
    const [head, line, ...more] = out.trimEnd().split('\n');
    assert.match(head ?? '', /^id +account +offering +supplier +phase +cost +paid until +created$/);
    assert.deepEqual((line ?? '').split(/ +/), [
      running.id,
      customer.accountId,
      'small',
      'local',
      'RUNNING',
      '0.00000000',
      running.reservedUntil,
      running.createdAt,
    ]);
    assert.deepEqual(more, []);
  });

  it('list filters by state and account, and continues after a page with --cursor', async () => {
    const ids = async (...args: string[]) =>
      (await json('list', ...args)).items.map(({ id }: { readonly id: string }) => id);
    assert.deepEqual(await ids('--state', 'ALL'), [running.id, ended.id]);
    assert.deepEqual(await ids('--state', 'TERMINATED'), [ended.id]);
    assert.deepEqual(await ids('--account', customer.accountId), [running.id]);
    assert.deepEqual(await ids('--account', newId()), []);
    const { out, notes } = await tollgate(['list', '--state', 'ALL', '--limit', '1']);
    assert.ok(out.includes(running.id) && !out.includes(ended.id));
    const cursor = /More entries: --cursor (\S+)/.exec(notes)?.[1] ?? '';
    const rest = await tollgate(['list', '--state', 'ALL', '--cursor', cursor]);
    assert.ok(rest.out.includes(ended.id) && !rest.out.includes(running.id), rest.notes);
    assert.doesNotMatch(rest.notes, /More entries/);
  });

  it("list --json prints each record completely, except the customer's metadata and idempotency key", async () => {
    const { items, nextCursor } = await json('list');
    assert.equal(nextCursor, null);
    const [item] = items;
    assert.deepEqual([item.offeringId, item.supplier, item.observedState], [SMALL_ID, 'local', 'RUNNING']);
    assert.equal(typeof item.supplierRef.id, 'string');
    assert.ok(!JSON.stringify(item).includes('private') && item.idempotencyKey === undefined);
  });

  it('orphans lists instances that belong to no sandbox, before and after their removal', async () => {
    assert.match((await tollgate(['orphans'])).notes, /Nothing yet/);
    const sandboxId = newId();
    const name = instanceName(sandboxId);
    const folder = join(gateway.dataFolder, 'suppliers', 'local', 'instances', name);
    const reference = { id: newId(), name };
    const instance = { reference, state: 'running', ports: false, createdAt: '2026-01-01T00:00:00.000Z' };
    await mkdir(join(folder, 'files'), { recursive: true });
    const tags = instanceTags(ENVIRONMENT, sandboxId);
    await writeFile(join(folder, 'instance.json'), JSON.stringify({ ...instance, tags }));
    const removed = await until(
      'it is removed',
      async () => {
        const { items } = await json('orphans');
        return items[0]?.removedAt === undefined || items[0].removedAt === null ? undefined : items;
      },
      30_000,
    );
    assert.equal(removed.length, 1);
    const { out } = await tollgate(['orphans']);
    const [head, line] = out.trimEnd().split('\n');
    assert.match(head ?? '', /^supplier +name +sandbox +reason +failed tries +found +removed$/);
    const [{ foundAt, removedAt }] = removed;
    assert.deepEqual((line ?? '').split(/ +/), ['local', name, '-', 'NO_SANDBOX', '0', foundAt, removedAt]);
    // The sandbox of this test is still listed.
    assert.deepEqual((await json('list')).items.length, 1);
  });

  it('places lists the data folders of sandboxes, and lose refuses a folder whose node still runs', async () => {
    const { items } = await json('places');
    const [place] = items;
    assert.deepEqual([items.length, place.supplier, place.silent, place.activeSandboxes], [1, 'local', false, 1]);
    const { out } = await tollgate(['places']);
    assert.match(out, /^id +supplier +host +last seen +silent +lost +active sandboxes$/m);
    const refused = await tollgate(['lose', place.id]);
    assert.equal(refused.status, 1);
    assert.match(refused.notes, /Stop that node first\. \(CONFLICT\)/);
    assert.match((await tollgate(['lose', 'nowhere'])).notes, /The place does not exist\. \(NOT_FOUND\)/);
  });
});
