import { expect } from 'chai';
import { request } from 'undici';
import type { DockerEngine } from '../support/docker';
import { startGateway, type TestGateway } from '../support/gateway';
import { dockerGateway } from '../support/sandbox-docker';
import {
  type AnyRecord,
  assertBooksAreClosed,
  createSandbox,
  creation,
  terminate,
  waitForState,
} from '../support/sandboxes';
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

  const start = async (name: string, policy: object = {}): Promise<string> => {
    const { id } = await createSandbox(gateway, key, creation(name, { policy }));
    await waitForState(gateway, key, id, 'RUNNING');
    return id;
  };

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

  it('run a command and return its output and exit code', async () => {
    const id = await start('one command');
    expect((await docker.containers()).filter((name) => name.includes(id))).to.have.length(1);
    const { stdout, exitCode } = await run(id, 'echo hello from $(hostname), $(id -u)');
    expect([stdout, exitCode]).to.deep.equal(['hello from sandbox, 1000\n', 0]);
    await finish(id);
  }).timeout(60_000);

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

  it('are isolated from each other when two run at once', async () => {
    const [one, two] = await Promise.all([start('first of two'), start('second of two')]);
    await run(one, 'echo mine > note; (sleep 1000 &) ; exec httpd -p 8001');
    expect((await run(two, 'ls -A; ps -o args | grep -c "[s]leep 1000"')).stdout).to.equal('0\n');
    const { headers } = (await get(one, '/ports/8001')).json;
    const theirs = (await get(two, '/ports/8001')).json;
    expect((await request(theirs.url, { headers })).statusCode).to.equal(404);
    expect((await request(theirs.url, { headers: theirs.headers })).statusCode).to.equal(502);
    await finish(one);
    expect((await run(two, 'echo still here')).stdout).to.equal('still here\n');
    await finish(two);
  }).timeout(60_000);

  it('keep files and processes over suspend and resume, and refuse commands while suspended', async () => {
    const id = await start('suspend and resume');
    const counting = 'n=0; while :; do n=$((n + 1)); echo $n > count; sleep 0.05; done';
    await run(id, counting, { background: true });
    await post(id, '/files', { path: 'kept', content: 'still there' });
    expect((await post(id, '/suspend', {})).status).to.equal(202);
    await waitForState(gateway, key, id, 'SUSPENDED');
    const refused = await post(id, '/commands', { command: 'echo no' });
    expect([refused.status, refused.json.error.code]).to.deep.equal([409, 'SANDBOX_NOT_RUNNING']);
    expect((await post(id, '/resume', {})).status).to.equal(202);
    await waitForState(gateway, key, id, 'RUNNING');
    expect((await get(id, '/files?path=kept')).json.content).to.equal('still there');
    const before = Number((await run(id, 'cat count')).stdout);
    await until('the suspended program continues', async () => Number((await run(id, 'cat count')).stdout) > before);
    const ended = await finish(id);
    const states = ended.usageSegments.map(({ state }: { state: string }) => state);
    expect(states.filter((state: string) => state !== 'PROVISIONING')).to.deep.equal([
      'RUNNING',
      'SUSPENDED',
      'RUNNING',
    ]);
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

  it('can be terminated while they are provisioned', async () => {
    const { id } = await createSandbox(gateway, key, creation('ended at once'));
    const ended = await terminate(gateway, key, id);
    assertBooksAreClosed(ended);
    expect(ended.observedState).to.equal('TERMINATED');
    // A creation that an end overtakes is cancelled. It has neither succeeded nor failed.
    const events = ended.events.map(({ type }: AnyRecord) => type);
    const hasRun = events.includes('RUNNING') && events.indexOf('RUNNING') < events.indexOf('TERMINATE_REQUESTED');
    const endings = Object.fromEntries(ended.operations.map(({ type, status }: AnyRecord) => [type, status]));
    expect(endings).to.deep.equal({ CREATE: hasRun ? 'SUCCEEDED' : 'CANCELLED', TERMINATE: 'SUCCEEDED' });
    await until('no container', async () => !(await docker.containers()).some((name) => name.includes(id)));
    const gone = await post(id, '/commands', { command: 'echo no' });
    expect([gone.status, gone.json.error.code]).to.deep.equal([410, 'SANDBOX_FINAL']);
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
