import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { Client } from 'pg';
import type { DockerEngine } from '../support/docker';
import { type GatewayOptions, isRunning, startGateway, type TestGateway } from '../support/gateway';
import { dockerGateway } from '../support/sandbox-docker';
import {
  type AnyRecord,
  assertBooksAreClosed,
  createSandbox,
  creation,
  running,
  terminate,
  waitForState,
} from '../support/sandboxes';
import { emptyRedis, newDatabase, sharedDocker } from '../support/shared';
import { until } from '../support/until';

describe('when a process, an instance or the engine fails,', () => {
  let docker: DockerEngine;
  let options: GatewayOptions;
  let databaseUrl: string;
  let gateway: TestGateway;
  let key: string;

  before(async function () {
    this.timeout(120_000);
    docker = await sharedDocker();
    databaseUrl = await newDatabase();
    const stores = { redisUrl: await emptyRedis(), databaseUrl };
    options = {
      stores,
      ...(await dockerGateway({ lease: '1s', observeSteady: '1s', silentAfter: '2s', goneAfter: '500ms' })),
    };
    gateway = await startGateway(options);
  });
  /** Gives each test a new account, and a running gateway. */
  beforeEach(async function () {
    this.timeout(120_000);
    docker.resume();
    if (!isRunning(gateway.process)) gateway = await startGateway(options);
    ({ key } = await gateway.newCustomer('20'));
  });

  after(async () => {
    docker.resume();
    await gateway?.stop();
  });

  const containersOf = async (id: string) => (await docker.containers()).filter((name) => name.includes(id));
  const stateAt = async (name: string) => {
    const { body } = await docker.ask('GET', `/containers/${name}/json`);
    return (body as AnyRecord).State?.Status as string | undefined;
  };

  /** Returns the names of the containers that the engine has made since then, one for each creation. */
  const createdSince = async (seconds: number): Promise<readonly string[]> => {
    const filters = encodeURIComponent(JSON.stringify({ type: ['container'], event: ['create'] }));
    const path = `/events?since=${seconds}&until=${Math.ceil(Date.now() / 1_000)}&filters=${filters}`;
    const lines = await new Promise<string>((resolve, reject) => {
      const asked = request({ socketPath: docker.socket, path, agent: false }, (answer) =>
        text(answer).then(resolve, reject),
      );
      asked.on('error', reject).end();
    });
    return lines
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line).Actor.Attributes.name);
  };

  /** Kills the gateway with SIGKILL once the engine has acted, and starts another. */
  const killOnce = async (what: string, condition: () => Promise<boolean>) => {
    await until(what, condition);
    await gateway.kill();
    gateway = await startGateway(options);
  };

  it('a worker that is killed after any step of the engine leaves one instance, later none, and a closed bill', async () => {
    const { id } = await createSandbox(gateway, key, creation('killed at every step'));
    await killOnce('the container is there', async () => (await containersOf(id)).length > 0);
    await waitForState(gateway, key, id, 'RUNNING');
    const [name = '', ...more] = await containersOf(id);
    expect(more).to.deep.equal([]);

    await gateway.call(`/v1/sandboxes/${id}/suspend`, { key });
    await killOnce('it is paused', async () => (await stateAt(name)) === 'paused');
    await waitForState(gateway, key, id, 'SUSPENDED');

    await gateway.call(`/v1/sandboxes/${id}/resume`, { key });
    await killOnce('it runs', async () => (await stateAt(name)) === 'running');
    await waitForState(gateway, key, id, 'RUNNING');
    expect(await containersOf(id)).to.deep.equal([name]);

    await gateway.call(`/v1/sandboxes/${id}/terminate`, { key });
    await killOnce('it is gone', async () => (await containersOf(id)).length === 0);
    assertBooksAreClosed(await waitForState(gateway, key, id, 'TERMINATED'));
    expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
  }).timeout(120_000);

  // The worker sees it between two looks. For a killed container only the engine knows the time.
  for (const [what, method, request] of [
    ['restarted', 'POST', '/restart?t=0'],
    ['removed', 'DELETE', '?force=1'],
    ['killed', 'POST', '/kill'],
  ] as const) {
    it(`an instance that was ${what} outside the gateway counts as lost, is billed at most until then, and is removed`, async () => {
      const { id } = await running(gateway, key, what);
      const [name] = await containersOf(id);
      const askedAt = Date.now();
      await docker.ask(method, `/containers/${name}${request}`);
      const doneAt = Date.now();
      const lost = await waitForState(gateway, key, id, 'FAILED');
      assertBooksAreClosed(lost);
      expect(lost.failure.code).to.equal('SUPPLIER_LOST');
      const endedAt = Date.parse(lost.usageSegments[0].endsAt);
      if (what === 'restarted') expect(endedAt).to.be.at.most(askedAt);
      else if (what === 'killed') expect(endedAt).to.be.within(askedAt - 1_500, doneAt);
      else expect(endedAt).to.be.at.most(doneAt);
      expect(await containersOf(id)).to.deep.equal([]);
    }).timeout(120_000);
  }

  it('the gateway answers 504 if the engine does not answer in time, and the instance continues afterwards', async () => {
    const { id } = await running(gateway, key, 'slow');
    const get = (path: string, more = {}) =>
      gateway.call(`/v1/sandboxes/${id}${path}`, { method: 'GET', key, ...more });
    const { headers } = (await get('/ports/8001')).json;
    docker.stall();
    const answer = await get('/ports/8001/proxy/', { headers });
    docker.resume();
    expect([answer.status, answer.json.error.code]).to.deep.equal([504, 'SUPPLIER_TIMEOUT']);
    await waitForState(gateway, key, id, 'RUNNING');
    const command = await gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { command: 'echo there' } });
    expect(command.json.stdout).to.equal('there\n');
    assertBooksAreClosed(await terminate(gateway, key, id));
  }).timeout(120_000);

  /** Repeats a creation that got 503 with the same idempotency key, as the contract tells callers. */
  const madeAt = (each: TestGateway, name: string): Promise<AnyRecord> =>
    until(`${name} is made`, async () => {
      const answer = await each.call('/v1/sandboxes', { key, body: creation(name) });
      expect(answer.status, answer.text).to.be.oneOf([202, 503]);
      return answer.status === 202 ? answer.json : undefined;
    });

  it('two workers create each instance only once, and terminate each instance', async () => {
    const begunSeconds = Math.floor(Date.now() / 1_000);
    const other = await startGateway(options);
    try {
      const both = [gateway, other];
      const names = Array.from({ length: 8 }, (_, index) => `both ${index}`);
      const ends = names.map(async (name, index) => {
        const [one = gateway, two = gateway] = index % 2 === 0 ? both : both.toReversed();
        // Both nodes get the same creation, and some of the sandboxes are ended while they are made.
        const [{ id }, again] = await Promise.all([one, two].map((each) => madeAt(each, name)));
        expect(again.id).to.equal(id);
        if (index < 4) await waitForState(two, key, id, 'RUNNING');
        if (index < 2) {
          await Promise.all(both.map((each) => each.call(`/v1/sandboxes/${id}/suspend`, { key })));
          await waitForState(one, key, id, 'SUSPENDED');
        }
        await Promise.all(both.map((each) => each.call(`/v1/sandboxes/${id}/terminate`, { key })));
        const ended = await waitForState(two, key, id, 'TERMINATED');
        assertBooksAreClosed(ended);
        const asked = ended.operations.filter(({ type }: AnyRecord) => type === 'TERMINATE');
        expect(asked).to.have.length(1);
        expect(await containersOf(id)).to.deep.equal([]);
        return id as string;
      });
      const ids = await Promise.all(ends);
      const made = (await createdSince(begunSeconds)).filter((name) => ids.some((id) => name.includes(id)));
      expect(made.length).to.be.greaterThan(3);
      expect(new Set(made).size).to.equal(made.length);
      expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
    } finally {
      await other.stop();
    }
  }).timeout(120_000);

  it('a command whose gateway was killed continues, and is ended at its time limit', async () => {
    const { id } = await running(gateway, key, 'command without gateway');
    const ask = (command: string, more: object) =>
      gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { command, ...more } });
    const { json } = await ask('sleep 1000', { background: true, timeoutSeconds: 600 });
    await gateway.kill();
    // Move the deadlines to now, as if the time had passed.
    const database = new Client({ connectionString: databaseUrl });
    await database.connect();
    await database.query('UPDATE sandbox_commands SET watched_until = now(), kill_at = now()');
    await database.end();
    gateway = await startGateway(options);
    const ended = await until('the command has ended', async () => {
      const { json: seen } = await gateway.call(`/v1/sandboxes/${id}/commands/${json.commandId}`, {
        method: 'GET',
        key,
      });
      return seen.status === 'RUNNING' ? undefined : seen;
    });
    expect(ended.status).to.equal('TIMED_OUT');
    expect((await ask('ps -o args | grep -c "[s]leep 1000"', {})).json.stdout).to.equal('0\n');
    assertBooksAreClosed(await terminate(gateway, key, id));
  }).timeout(120_000);

  it('a stopping gateway closes its connections to commands, to their followers and to ports, and the commands continue', async () => {
    const { id } = await running(gateway, key, 'gateway stops');
    const commands = `/v1/sandboxes/${id}/commands`;
    const body = { command: 'echo ready; sleep 1000', background: true };
    const { commandId } = (await gateway.call(commands, { key, body })).json;
    const get = (path: string, headers = {}) => gateway.call(path, { method: 'GET', key, headers });
    await gateway.call(commands, { key, body: { command: 'nc -l -p 8003 -e sleep 1000', background: true } });
    const { headers } = (await get(`/v1/sandboxes/${id}/ports/8003`)).json;
    const waiting = [
      get(`${commands}/${commandId}/logs?follow=true`),
      gateway.call(commands, { key, body: { command: 'sleep 1001', timeoutSeconds: 2_000 } }),
      get(`/v1/sandboxes/${id}/ports/8003/proxy/`, headers).catch(() => undefined),
    ];
    const count = async () => (await gateway.call(commands, { key, body: { command: PROCESSES } })).json.stdout;
    await until('all of it runs', async () => (await count()) === '3\n');
    expect(await gateway.stop()).to.equal(0);
    const [followed, waited] = await Promise.all(waiting);
    expect(followed?.text).to.include('ready').and.not.include('event: exit');
    expect([waited?.status, waited?.json.status]).to.deep.equal([201, 'RUNNING']);
    gateway = await startGateway(options);
    expect((await get(`${commands}/${commandId}`)).json.status).to.equal('RUNNING');
    assertBooksAreClosed(await terminate(gateway, key, id));
  }).timeout(120_000);
});

/** Counts the three sleeping processes; the connection to the port started one of them. */
const PROCESSES = 'ps -o args | grep -cE "^sleep 100"; true';
