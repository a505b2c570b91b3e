import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { request } from 'undici';
import type { DockerEngine } from '../support/docker';
import { freePort } from '../support/free-port';
import { buildImage, importNodeBase } from '../support/image';
import { builtServer, sharedDocker } from '../support/shared';
import { until } from '../support/until';
import { messagesStream, startUpstream, type TestUpstream } from '../support/upstream';

const BASE = 'tollgate-test:node';
const IMAGE = 'tollgate-test:gateway';
const VOLUME = 'tollgate-test-data';

interface Inspected {
  readonly State: {
    readonly Pid: number;
    readonly Health?: { readonly Status: string };
  };
}

describe('the image of deploy/docker/Dockerfile', function () {
  this.timeout(600_000);
  let engine: DockerEngine;
  let upstream: TestUpstream;
  const made: string[] = [];

  before(async () => {
    [engine, upstream] = await Promise.all([sharedDocker(), startUpstream(), builtServer()]);
    await importNodeBase(engine.socket, BASE);
    await buildImage(engine.socket, IMAGE, 'deploy/docker/Dockerfile', BASE);
  });
  after(async () => {
    for (const id of made) await engine.ask('DELETE', `/containers/${id}?force=1&v=1`);
    if (made.length > 0) await engine.ask('DELETE', `/volumes/${VOLUME}`);
    await upstream?.stop();
  });

  /** Runs the image as docs/deploying.md describes, in the network of this machine. */
  const start = async (env: Readonly<Record<string, string>>, command?: readonly string[]): Promise<string> => {
    const settings = { HOST: '127.0.0.1', ...env };
    const { status, body } = await engine.ask('POST', '/containers/create', {
      Image: IMAGE,
      Env: Object.entries(settings).map(([name, value]) => `${name}=${value}`),
      ...(command && { Cmd: command }),
      HostConfig: {
        NetworkMode: 'host',
        ReadonlyRootfs: true,
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        Binds: [`${VOLUME}:/data`],
      },
    });
    const { Id } = body as { Id: string };
    assert.equal(status, 201, JSON.stringify(body));
    made.push(Id);
    assert.equal((await engine.ask('POST', `/containers/${Id}/start`)).status, 204);
    return Id;
  };
  const inspect = async (id: string) => (await engine.ask('GET', `/containers/${id}/json`)).body as Inspected;
  const ended = async (id: string) => {
    const { body } = await engine.ask('POST', `/containers/${id}/wait`);
    return (body as { StatusCode: number }).StatusCode;
  };

  /** Runs a command beside the gateway, and returns its exit status. */
  const execute = async (id: string, env: readonly string[], ...command: readonly string[]) => {
    const { body } = await engine.ask('POST', `/containers/${id}/exec`, { Cmd: command, Env: env, AttachStdout: true });
    const { Id } = body as { Id: string };
    await engine.ask('POST', `/exec/${Id}/start`, { Detach: false });
    return ((await engine.ask('GET', `/exec/${Id}/json`)).body as { ExitCode: number }).ExitCode;
  };

  const has = async (id: string, path: string) =>
    (await engine.ask('GET', `/containers/${id}/archive?path=${encodeURIComponent(path)}`)).status === 200;

  it('runs the quick start as an unprivileged user with a read-only root', async () => {
    const [PORT, ADMIN_PORT, DEMO_PORT] = [await freePort(), await freePort(), await freePort()].map(String);
    const ports = { PORT, ADMIN_PORT, DEMO_PORT } as Record<string, string>;
    assert.equal(await ended(await start(ports, ['demo/quickstart.mjs', '--check'])), 0);
  });

  it('contains what production needs, and no developer tools', async () => {
    const [id = ''] = made;
    const paths = ['express-gateway', 'pino', 'typescript', 'mocha'].map((name) => `/app/node_modules/${name}`);
    assert.deepEqual(await Promise.all(paths.map((path) => has(id, path))), [true, true, false, false]);
    assert.equal(await has(id, '/app/dist/server.d.ts'), false);
  });

  it('is healthy while it serves, runs without privileges, accepts commands, and finishes a stream after SIGTERM', async () => {
    const port = await freePort();
    const adminPort = await freePort();
    const id = await start({
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      HEALTH_URL: `http://127.0.0.1:${port}/healthz`,
      DEMO_PORT: String(upstream.port),
      DEMO_UPSTREAM_KEY: 'key of the upstream',
    });
    await until('it is healthy', async () => (await inspect(id)).State.Health?.Status === 'healthy', 60_000);
    const status = await readFile(`/proc/${(await inspect(id)).State.Pid}/status`, 'utf8');
    assert.match(status, /^Uid:\t1000\t1000\t1000\t1000$/m);
    assert.match(status, /^CapEff:\t0+$/m);

    const list = ['node', 'dist/cli/tollgate.js', 'accounts', 'list'];
    assert.equal(await execute(id, [`TOLLGATE_URL=http://127.0.0.1:${adminPort}`], ...list), 0);

    const volume = (await engine.ask('GET', `/volumes/${VOLUME}`)).body as { Mountpoint: string };
    const { key } = JSON.parse(await readFile(join(volume.Mountpoint, 'quickstart.json'), 'utf8'));
    let sendRest = (): void => undefined;
    const rest = new Promise<void>((done) => {
      sendRest = done;
    });
    const usage = { input: 10, output: 5 };
    upstream.next(messagesStream({ texts: ['one', 'two'], usage, waitFor: { before: 4, until: rest } }));
    const { body } = await request(`http://127.0.0.1:${port}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-api-key': key },
      body: JSON.stringify({
        model: 'demo-model',
        max_tokens: 100,
        stream: true,
        messages: [{ role: 'user', content: 'Hello' }],
      }),
    });
    let read = '';
    body.on('data', (chunk) => (read += String(chunk)));
    await until('the stream has begun', () => read.includes('one'));
    assert.equal((await engine.ask('POST', `/containers/${id}/kill?signal=SIGTERM`)).status, 204);
    const readiness = () => request(`http://127.0.0.1:${port}/readyz`).then(({ statusCode }) => statusCode);
    await until('it is stopping', async () => (await readiness()) === 503);
    sendRest();
    assert.equal(await ended(id), 0);
    assert.match(read, /message_stop/);
  });
});
