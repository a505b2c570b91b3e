import { strict as assert } from 'node:assert';
import { startGateway, type TestGateway } from '../support/gateway';
import { dockerGateway } from '../support/sandbox-docker';
import { assertBooksAreClosed, createSandbox, creation, running, terminate } from '../support/sandboxes';
import { emptyRedis, newDatabase } from '../support/shared';

describe('a process with the role gateway and one with the role worker', function () {
  this.timeout(120_000);
  let gateway: TestGateway;
  let worker: TestGateway;

  before(async () => {
    const stores = { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
    const options = { stores, ...(await dockerGateway()) };
    gateway = await startGateway({ ...options, env: { ROLE: 'gateway' } });
    worker = await startGateway({ ...options, env: { ROLE: 'worker' } });
  });

  after(async () => {
    await gateway?.stop();
    await worker?.stop();
  });

  it('run a sandbox together from its creation to its end', async () => {
    const { key } = await gateway.newCustomer('10');
    const { id } = await running(gateway, key, 'roles');
    const { json } = await gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { command: 'echo served' } });
    assert.equal(json.stdout, 'served\n');
    assertBooksAreClosed(await terminate(gateway, key, id));
  });

  it('differ in their routes: the worker serves only health and metrics', async () => {
    const { key } = await gateway.newCustomer('10');
    for (const path of ['/v1/messages', '/v1/chat/completions', '/v1/sandboxes', '/v1/balance', '/openapi.json', '/']) {
      for (const method of ['GET', 'POST']) {
        const { status, json } = await worker.call(path, { method, key, ...(method === 'POST' ? { body: {} } : {}) });
        assert.deepEqual([status, json.error.code], [404, 'NOT_FOUND'], `${method} ${path}`);
      }
    }
    assert.equal((await worker.call('/healthz', { method: 'GET' })).status, 200);
    assert.equal((await worker.call('/readyz', { method: 'GET' })).status, 200);
    assert.match(
      (await worker.admin('GET', '/metrics')).text,
      /tollgate_sandbox_supplier_calls_total\{[^}]*verb="create"/,
    );
    for (const path of ['/admin/v1/accounts', '/policies']) assert.equal((await worker.admin('GET', path)).status, 404);
  });

  it('keep creations and terminations waiting for the next worker after the only worker has stopped', async () => {
    const { key } = await gateway.newCustomer('10');
    await worker.stop();
    const { id } = await createSandbox(gateway, key, creation('waits'));
    const waiting = await gateway.call(`/v1/sandboxes/${id}?waitFor=RUNNING&waitSeconds=2`, { method: 'GET', key });
    assert.equal(waiting.json.observedState, 'PROVISIONING');
    assert.equal((await gateway.call(`/v1/sandboxes/${id}/terminate`, { key })).status, 202);
  });
});
