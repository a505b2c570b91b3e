import { expect } from 'chai';
import { request } from 'undici';
import type { DockerEngine } from '../support/docker';
import { startGateway, type TestGateway } from '../support/gateway';
import { dockerGateway } from '../support/sandbox-docker';
import { type AnyRecord, assertBooksAreClosed, running, terminate, waitForState } from '../support/sandboxes';
import { sharedDocker } from '../support/shared';
import { until } from '../support/until';

describe('sandboxes at a real Docker engine', () => {
  let gateway: TestGateway;
  let docker: DockerEngine;
  let key: string;

  before(async function () {
    this.timeout(120_000);
    docker = await sharedDocker();
    gateway = await startGateway({ stores: 'real', ...(await dockerGateway()) });
    ({ key } = await gateway.newCustomer('20'));
  });

  after(() => gateway?.stop());

  const post = (id: string, path: string, body: object) => gateway.call(`/v1/sandboxes/${id}${path}`, { key, body });
  const get = (id: string, path: string) => gateway.call(`/v1/sandboxes/${id}${path}`, { method: 'GET', key });
  const run = async (id: string, command: string, more: object = {}): Promise<AnyRecord> => {
    const { status, json, text } = await post(id, '/commands', { command, ...more });
    expect(status, text).to.equal(201);
    return json;
  };

  const start = async (name: string, policy: object = {}): Promise<string> =>
    (await running(gateway, key, name, { policy })).id;

  /** Ends a sandbox and asserts that no open operation, segment or period and no container is left. */
  const finish = async (id: string): Promise<AnyRecord> => {
    const ended = await terminate(gateway, key, id);
    assertBooksAreClosed(ended);
    const all = (await get(id, '/audit?kind=operations&pageSize=100')).json.items;
    const open = all.filter(({ status }: { status: string }) => status !== 'SUCCEEDED');
    expect(open, JSON.stringify(open)).to.deep.equal([]);
    const events = (await get(id, '/audit?kind=events&pageSize=100')).json.items;
    expect(events.some(({ currentState }: { currentState: string }) => currentState === 'TERMINATED')).to.equal(true);
    expect((await docker.containers()).filter((name) => name.includes(id))).to.deep.equal([]);
    return ended;
  };

  it('run a script that was uploaded, and return the file that it wrote', async () => {
    const id = await start('write, run, read');
    await post(id, '/files', { path: 'job/count.sh', content: 'wc -w < input > output; echo counted' });
    await post(id, '/files', { path: 'job/input', content: 'one two three\nfour\n' });
    expect((await run(id, 'sh count.sh', { cwd: 'job' })).stdout).to.equal('counted\n');
    expect((await get(id, '/files?path=job/output')).json.content.trim()).to.equal('4');
    const { items } = (await get(id, '/files/list?path=job')).json;
    expect(items.map(({ path }: { path: string }) => path).sort()).to.deep.equal([
      'job/count.sh',
      'job/input',
      'job/output',
    ]);
    await finish(id);
  }).timeout(60_000);

  it('serve a page from a background command through a port', async () => {
    const id = await start('web server');
    await post(id, '/files', { path: 'site/index.html', content: '<h1>from inside</h1>' });
    const server = await run(id, 'exec httpd -f -v -p 8000', { cwd: 'site', background: true });
    expect(server.status).to.equal('RUNNING');
    const { url, headers } = (await get(id, '/ports/8000')).json;
    const page = await until('the page', async () => {
      const answer = await request(url, { headers });
      const text = await answer.body.text();
      return answer.statusCode === 200 ? { text, headers: answer.headers } : undefined;
    });
    expect(page.text).to.equal('<h1>from inside</h1>');
    expect(page.headers['content-security-policy']).to.equal('sandbox');
    const logs = await until('the log of it', async () => {
      const { items } = (await get(id, `/commands/${server.commandId}/logs`)).json;
      return items.length > 0 ? items : undefined;
    });
    expect(logs.map(({ data }: { data: string }) => data).join('')).to.include('200');
    await finish(id);
    expect((await request(url, { headers })).statusCode).to.be.oneOf([404, 410]);
    expect((await get(id, `/commands/${server.commandId}`)).status).to.equal(200);
  }).timeout(60_000);

  it('with `resumeOnAccess` are resumed by a command', async () => {
    const id = await start('resumed on access', { resumeOnAccess: true });
    await post(id, '/files', { path: 'kept', content: 'x' });
    await post(id, '/suspend', {});
    await waitForState(gateway, key, id, 'SUSPENDED');
    expect((await run(id, 'cat kept')).stdout).to.equal('x');
    expect((await get(id, '')).json.observedState).to.equal('RUNNING');
    await finish(id);
  }).timeout(60_000);

  it('close the connections through their ports when the instance dies', async () => {
    const id = await start('dies');
    await run(id, 'nc -l -p 8002 -e sleep 1000', { background: true });
    await until('it listens', async () => (await run(id, 'netstat -tln | grep -c :8002')).stdout !== '0\n');
    const { url, headers } = (await get(id, '/ports/8002')).json;
    const asked = request(url, { headers, headersTimeout: 30_000 }).then(
      async ({ statusCode, body }) => `${statusCode} ${await body.text()}`,
      (error: Error) => error.message,
    );
    await until(
      'a connection is open',
      async () => (await run(id, 'netstat -tn | grep -c 8002.*ESTAB')).stdout !== '0\n',
    );
    await finish(id);
    expect(await asked).to.not.include('200');
  }).timeout(60_000);

  it('leave no container at the engine and no money held after all these tests', async () => {
    expect((await docker.containers()).filter((name) => name.startsWith('tg-'))).to.deep.equal([]);
    expect((await gateway.balance(key)).heldUsd).to.equal('0.00000000');
  });
});
