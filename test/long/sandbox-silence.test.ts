import { expect } from 'chai';
import type { DockerEngine } from '../support/docker';
import { startGateway, type TestGateway } from '../support/gateway';
import { dockerGateway } from '../support/sandbox-docker';
import { type AnyRecord, assertBooksAreClosed, running, terminate, units } from '../support/sandboxes';
import { emptyRedis, newDatabase, sharedDocker } from '../support/shared';
import { until } from '../support/until';

/** How long the engine is silent. `npm run silence` sets two minutes with the times of production; without it the times are short. */
const SILENT_MS = Number(process.env['ENGINE_SILENT_SECONDS'] ?? 0) * 1_000;
const TIMES = SILENT_MS > 0 ? {} : { observeSteady: '1s', silentAfter: '2s', goneAfter: '500ms' };
/** How often the worker looks at an instance in a steady state. */
const OBSERVED_EVERY_MS = SILENT_MS > 0 ? 60_000 : 1_000;

describe(`sandboxes whose engine does not answer${SILENT_MS > 0 ? ` for ${SILENT_MS / 1_000} s` : ''}`, function () {
  this.timeout(120_000 + 5 * SILENT_MS);
  let docker: DockerEngine;
  let gateway: TestGateway;
  let key: string;

  before(async () => {
    docker = await sharedDocker();
    const stores = { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
    gateway = await startGateway({ stores, ...(await dockerGateway(TIMES)) });
    ({ key } = await gateway.newCustomer('20'));
  });

  after(async () => {
    docker.resume();
    await gateway?.stop();
  });

  const get = async (path: string): Promise<AnyRecord> => (await gateway.call(path, { method: 'GET', key })).json;
  const containerOf = async (id: string) => (await docker.containers()).find((name) => name.includes(id));

  /** Silences the engine. Resolves with the record once its state is UNKNOWN and the time of the silence is over. */
  const silence = async (id: string): Promise<{ beganAtMs: number; unknown: AnyRecord }> => {
    const beganAtMs = Date.now();
    docker.stall();
    await until('it is unknown', async () => (await get(`/v1/sandboxes/${id}`)).observedState === 'UNKNOWN', 300_000);
    await new Promise((wake) => setTimeout(wake, Math.max(0, beganAtMs + SILENT_MS - Date.now())));
    return { beganAtMs, unknown: await get(`/v1/sandboxes/${id}`) };
  };

  it('are UNKNOWN during the silence, then keep their files and commands, and are billed without a gap', async () => {
    const id = (await running(gateway, key, 'silent engine')).id;
    const { createdAt } = await get(`/v1/sandboxes/${id}`);
    await gateway.call(`/v1/sandboxes/${id}/files`, { key, body: { path: 'kept', content: 'x' } });
    const seconds = Math.ceil(SILENT_MS / 1_000) + 6;
    const body = { command: `echo before; sleep ${seconds}; echo after`, timeoutSeconds: seconds + 120 };
    const { commandId } = (
      await gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { ...body, background: true } })
    ).json;
    const { unknown } = await silence(id);
    expect([unknown.lifecyclePhase, unknown.lastConfirmedState]).to.deep.equal(['RECONCILING', 'RUNNING']);
    // Nothing is settled and the segment is open, because the state is not known yet.
    expect(units(unknown.totalCost)).to.equal(0n);
    expect(unknown.usageSegments.map(({ status }: AnyRecord) => status)).to.deep.equal(['OPEN']);
    const refused = await gateway.call(`/v1/sandboxes/${id}/commands`, { key, body: { command: ':' } });
    expect([refused.status, refused.json.error.code]).to.deep.equal([409, 'SANDBOX_NOT_RUNNING']);
    docker.resume();
    await until('it runs again', async () => (await get(`/v1/sandboxes/${id}`)).observedState === 'RUNNING', 120_000);
    // The engine serves new sandboxes again.
    await terminate(gateway, key, (await running(gateway, key, 'after the silence')).id);
    expect((await get(`/v1/sandboxes/${id}/files?path=kept`)).content).to.equal('x');
    const ended = await until(
      'the command has ended',
      async () => {
        const seen = await get(`/v1/sandboxes/${id}/commands/${commandId}`);
        return seen.status === 'RUNNING' ? undefined : seen;
      },
      60_000,
    );
    expect(ended).to.include({ status: 'EXITED', exitCode: 0, stdout: 'before\nafter\n' });
    const closed = await terminate(gateway, key, id);
    assertBooksAreClosed(closed);
    const [segment] = closed.usageSegments;
    // The engine says that the same container ran all the time, so the bill has one segment from the first answer to the end.
    expect(closed.usageSegments).to.have.length(1);
    expect(Date.parse(segment.startsAt)).to.be.greaterThan(Date.parse(createdAt));
    expect(segment.seconds * 1_000).to.be.at.least(SILENT_MS);
    expect(await containerOf(id)).to.equal(undefined);
  });

  for (const [what, isAsked] of [
    ['are not terminated meanwhile', false],
    ['are terminated meanwhile', true],
  ] as const) {
    it(`are billed until the last confirmation if their containers disappear during the silence and the sandboxes ${what}`, async () => {
      const id = (await running(gateway, key, `gone in the silence ${isAsked}`)).id;
      const { Id } = (await docker.ask('GET', `/containers/${await containerOf(id)}/json`)).body as { Id: string };
      const { beganAtMs } = await silence(id);
      // The request waits for the engine, so the gateway cannot see when the container is removed.
      const removed = docker.ask('DELETE', `/containers/${Id}?force=1`);
      if (isAsked) await gateway.call(`/v1/sandboxes/${id}/terminate`, { key });
      await new Promise((wake) => setTimeout(wake, 1_000));
      docker.resume();
      await removed;
      const closed = await until(
        'it has ended',
        async () => {
          const seen = await get(`/v1/sandboxes/${id}?waitFor=FAILED&waitSeconds=5`);
          return ['FAILED', 'TERMINATED'].includes(seen.observedState) ? seen : undefined;
        },
        120_000,
      );
      assertBooksAreClosed(closed);
      expect(closed.observedState).to.equal(isAsked ? 'TERMINATED' : 'FAILED');
      const [segment] = closed.usageSegments;
      expect(Date.parse(segment.endsAt)).to.be.within(beganAtMs - OBSERVED_EVERY_MS - 5_000, beganAtMs + 500);
      expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
    });
  }
});
