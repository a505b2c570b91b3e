import { expect } from 'chai';
import { request } from 'undici';
import { type Answered, startGateway, type TestGateway } from '../support/gateway';
import { createSandbox, creation, SANDBOX_GATEWAY, terminate, waitForState } from '../support/sandboxes';
import { until } from '../support/until';

const LIMITS = { commandsPerSandbox: 3, commandsPerAccount: 4, followersPerSandbox: 2 };

describe('the command limits of sandboxes', function () {
  this.timeout(120_000);
  let gateway: TestGateway;
  let key: string;
  let ids: string[];
  let running: string[];

  before(async () => {
    const plugins = { sandbox: { ...SANDBOX_GATEWAY.plugins.sandbox, ...LIMITS } };
    gateway = await startGateway({ ...SANDBOX_GATEWAY, plugins });
    ({ key } = await gateway.newCustomer('5'));
    ids = [];
    for (const name of ['one', 'two']) ids.push((await createSandbox(gateway, key, creation(name))).id);
    for (const id of ids) await waitForState(gateway, key, id, 'RUNNING');
  });
  after(async () => {
    for (const id of ids) await terminate(gateway, key, id);
    await gateway.stop();
  });

  const begin = (index: number, headers = {}) =>
    gateway.call(`/v1/sandboxes/${ids[index]}/commands`, {
      key,
      headers,
      body: { command: 'sleep 300', background: true },
    });

  const expectRefused = ({ status, headers, json }: Answered) => {
    expect([status, json.error.code, json.error.type]).to.deep.equal([429, 'COMMAND_LIMIT', 'rate_limit_error']);
    expect(Number(headers['retry-after'])).to.be.greaterThan(0);
  };

  const follow = () =>
    request(`${gateway.url}/v1/sandboxes/${ids[0]}/commands/${running[0]}/logs?follow=true`, {
      headers: { 'x-api-key': key },
    });

  it('allow `commandsPerSandbox` commands of a sandbox, however many begin at the same time', async () => {
    const answers = await Promise.all(Array.from({ length: 20 }, () => begin(0)));
    running = answers.filter(({ status }) => status === 201).map(({ json }) => json.commandId);
    expect(running).to.have.length(LIMITS.commandsPerSandbox);
    for (const answer of answers) if (answer.status !== 201) expectRefused(answer);
  });

  it('allow `commandsPerAccount` commands in all sandboxes of an account together', async () => {
    expect((await begin(1)).status).to.equal(201);
    expectRefused(await begin(1));
  });

  it('allow `followersPerSandbox` clients to follow commands of a sandbox, and another client once one disconnects', async () => {
    const following = [await follow(), await follow()];
    const third = await follow();
    expect(third.statusCode).to.equal(429);
    expect(JSON.parse(await third.body.text()).error.code).to.equal('COMMAND_LIMIT');
    expectRefused(await begin(0, { accept: 'text/event-stream' }));
    for (const { body } of following.slice(1)) body.on('error', () => undefined).destroy();
    const next = await until('another may follow', async () => {
      const { statusCode, body } = await follow();
      if (statusCode === 200) return body;
      await body.dump();
      return undefined;
    });
    for (const body of [next, following[0]?.body]) body?.on('error', () => undefined).destroy();
  });

  it('allow another command once a running command has ended', async () => {
    await gateway.call(`/v1/sandboxes/${ids[0]}/commands/${running[0]}/signal`, { key, body: { signal: 'SIGKILL' } });
    await until('another may run', async () => (await begin(0)).status === 201);
  });
});
