import { readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Knex } from 'knex';
import { newDataFolder } from '../support/data-folder';
import { startGateway, type TestGateway } from '../support/gateway';
import { isRunning } from '../support/instances';
import { findProgram } from '../support/programs';
import {
  type AnyRecord,
  assertBooksAreClosed,
  createSandbox,
  creation,
  SANDBOX_GATEWAY,
  terminate,
  units,
  waitForState,
} from '../support/sandboxes';
import { databaseOf, type RealStores, realStores } from '../support/stores';
import { until } from '../support/until';

const TIMES = { observeSteady: '500ms', observeMoving: '300ms', goneAfter: '500ms', silentAfter: '2s', lease: '3s' };

/** How long a test waits, so that every node looks at its sandboxes several times. */
const QUIET_MS = 4_000;

describe('Two nodes with the process driver, separate data folders and the same Postgres and Redis', function () {
  this.timeout(180_000);
  let stores: RealStores;
  let database: Knex;
  const folders: string[] = [];
  const nodes: TestGateway[] = [];
  let customer: { readonly key: string };
  let made = 0;

  const start = (dataFolder: string, env: NodeJS.ProcessEnv = {}) =>
    startGateway({
      env,
      ...SANDBOX_GATEWAY,
      plugins: { sandbox: { ...SANDBOX_GATEWAY.plugins.sandbox, ...TIMES } },
      stores,
      dataFolder,
    });
  const node = (index: number) => nodes[index] as TestGateway;
  const run = (index: number, id: string, command: string, background = false) =>
    node(index).call(`/v1/sandboxes/${id}/commands`, { key: customer.key, body: { command, background } });

  /** Makes a sandbox at a node and starts a command there that only this sandbox has. */
  const newSandbox = async (index: number): Promise<{ readonly id: string; readonly sleep: string }> => {
    made += 1;
    const { id } = await createSandbox(
      node(index),
      customer.key,
      creation(`nodes-${made}`, { policy: { resumeOnAccess: true } }),
    );
    await waitForState(node(index), customer.key, id, 'RUNNING');
    const sleep = `sleep 600.${process.pid}${made}`;
    const started = await run(index, id, sleep, true);
    expect(started.status, started.text).to.equal(201);
    await until(`${sleep} runs`, () => isRunning(sleep));
    return { id, sleep };
  };
  const read = async (index: number, id: string): Promise<AnyRecord> =>
    (await node(index).call(`/v1/sandboxes/${id}`, { method: 'GET', key: customer.key })).json;

  /** Resolves once the bill has evidence that a sandbox ran for a while. */
  const hasRun = (id: string) =>
    until(
      `${id} has run for a while`,
      async () => {
        const [row] = await database('sandboxes as sandbox')
          .join('usage_segments as segment', 'segment.sandbox_id', 'sandbox.id')
          .where({ 'sandbox.id': id })
          .select('sandbox.confirmed_at', 'segment.starts_at');
        return row.confirmed_at - row.starts_at > 500;
      },
      20_000,
    );

  before(async () => {
    findProgram('bwrap');
    stores = await realStores();
    database = await databaseOf(stores);
    for (let index = 0; index < 2; index += 1) {
      folders.push(await newDataFolder());
      nodes.push(await start(folders[index] as string));
    }
    customer = await node(0).newCustomer('50');
  });

  after(async () => {
    for (const each of nodes) await each.stop();
    await database?.destroy();
  });

  it('keep every sandbox running on the node that made it', async () => {
    const sandboxes: { readonly id: string; readonly sleep: string; readonly home: number }[] = [];
    for (const home of [0, 1, 0, 1]) sandboxes.push({ ...(await newSandbox(home)), home });
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    for (const { id, sleep, home } of sandboxes) {
      expect((await read(home, id)).observedState).to.equal('RUNNING');
      expect((await run(home, id, 'echo here')).json.stdout).to.equal('here\n');
      expect(await isRunning(sleep), sleep).to.equal(true);
      const record = await terminate(node(home), customer.key, id);
      expect(await isRunning(sleep), sleep).to.equal(false);
      expect(record.observedState).to.equal('TERMINATED');
      expect(Number(units(record.totalCost))).to.be.above(0);
      assertBooksAreClosed(record);
    }
  });

  it('answer 503 SANDBOX_ELSEWHERE without a charge to requests inside a sandbox of the other node', async () => {
    const { id, sleep } = await newSandbox(0);
    const path = `/v1/sandboxes/${id}`;
    const { key } = customer;
    const command = (await run(0, id, 'echo kept', true)).json;
    const asked = [
      () => run(1, id, 'echo lost'),
      () => node(1).call(`${path}/files`, { key, body: { path: 'lost', content: 'x' } }),
      () => node(1).call(`${path}/files?path=lost`, { method: 'GET', key }),
      () => node(1).call(`${path}/ports/8000`, { method: 'GET', key }),
      () => node(1).call(`${path}/commands/${command.commandId}/signal`, { key, body: { signal: 'SIGTERM' } }),
    ];
    for (const each of asked) {
      const { status, json, headers } = await until('the ledger answers', async () => {
        const answer = await each();
        return answer.json.error?.code === 'LEDGER_UNAVAILABLE' ? undefined : answer;
      });
      expect([status, json.error.code, json.error.retryable]).to.deep.equal([503, 'SANDBOX_ELSEWHERE', true]);
      expect(headers['retry-after']).to.equal('1');
    }
    // A node that cannot reach a sandbox with `resumeOnAccess` must not resume it, because the customer would pay.
    await node(0).call(`${path}/suspend`, { key });
    await waitForState(node(1), key, id, 'SUSPENDED');
    expect((await run(1, id, 'echo lost')).json.error.code).to.equal('SANDBOX_ELSEWHERE');
    expect((await read(1, id)).observedState).to.equal('SUSPENDED');
    expect((await run(0, id, 'echo resumed')).json.stdout).to.equal('resumed\n');
    const record = await terminate(node(1), key, id);
    expect(await isRunning(sleep)).to.equal(false);
    expect(record.observedState).to.equal('TERMINATED');
    assertBooksAreClosed(record);
  });

  it('let a third process with the role gateway reach their sandboxes only if it shares the data folder', async () => {
    const serving = await start(folders[1] as string, { ROLE: 'gateway' });
    try {
      const shared = await readlink(join(folders[1] as string, 'suppliers/local/place'));
      for (const name of ['one', 'two', 'three']) {
        const { id } = await createSandbox(serving, customer.key, creation(`served ${name}`));
        await waitForState(serving, customer.key, id, 'RUNNING');
        // Either node may have made it.
        const { place } = await database('sandboxes').where({ id }).first('place');
        const body = { command: 'echo served' };
        const { status } = await serving.call(`/v1/sandboxes/${id}/commands`, { key: customer.key, body });
        expect(status).to.equal(place === shared ? 201 : 503);
        expect((await terminate(serving, customer.key, id)).observedState).to.equal('TERMINATED');
      }
    } finally {
      await serving.stop();
    }
  });

  it('never end a sandbox of the other node while that node is away; it ends and bills the sandbox after its return', async () => {
    const { id, sleep } = await newSandbox(0);
    await hasRun(id);
    await node(0).kill();
    await waitForState(node(1), customer.key, id, 'UNKNOWN');
    const asked = await node(1).call(`/v1/sandboxes/${id}/terminate`, { key: customer.key });
    expect(asked.status).to.equal(202);
    await new Promise((resolve) => setTimeout(resolve, QUIET_MS));
    const waiting = await read(1, id);
    expect([waiting.observedState, waiting.lifecyclePhase]).to.deep.equal(['UNKNOWN', 'TERMINATING']);
    expect(await isRunning(sleep)).to.equal(true);
    nodes[0] = await start(folders[0] as string);
    const record = await waitForState(node(1), customer.key, id, 'TERMINATED,FAILED');
    expect(record.observedState).to.equal('TERMINATED');
    expect(await isRunning(sleep)).to.equal(false);
    expect(Number(units(record.totalCost))).to.be.above(0);
    assertBooksAreClosed(record);
  });

  it('end the sandboxes of a node that an operator declares lost, and bill them up to the last confirmation', async () => {
    const { key } = await node(1).newCustomer('50');
    const { id } = await createSandbox(node(0), key, creation('gone for good'));
    await waitForState(node(0), key, id, 'RUNNING');
    await hasRun(id);
    const items = async (path: string): Promise<AnyRecord[]> => (await node(1).admin('GET', path)).json.items;
    const { place } = (await items('/admin/v1/sandboxes')).find((each) => each.id === id);
    const silent = async () => (await items('/admin/v1/sandboxes/places')).find((each) => each.id === place).silent;
    expect(await silent()).to.equal(false);
    const lose = () => node(1).admin('POST', `/admin/v1/sandboxes/places/${place}/lose`, {});
    const early = await lose();
    expect([early.status, early.json.error.code]).to.deep.equal([409, 'CONFLICT']);
    await node(0).kill();
    await waitForState(node(1), key, id, 'UNKNOWN');
    expect(await silent()).to.equal(true);
    expect((await lose()).status).to.equal(200);
    const record = await waitForState(node(1), key, id, 'TERMINATED,FAILED');
    expect([record.observedState, record.failure.code]).to.deep.equal(['FAILED', 'SUPPLIER_LOST']);
    expect(Number(units(record.totalCost))).to.be.above(0);
    assertBooksAreClosed(record);
    expect((await node(1).balance(key)).heldUsd).to.equal('0.00000000');
    // If the node returns nevertheless, it removes what is left of its sandboxes.
    nodes[0] = await start(folders[0] as string);
  });
});
