import { expect } from 'chai';
import { request } from 'undici';
import { asDocumented } from '../support/documents';
import { startGateway, type TestGateway } from '../support/gateway';
import { isRunning } from '../support/instances';
import { findProgram } from '../support/programs';
import { NODE_INSIDE, type RunningSandbox, runningSandbox, SANDBOX_GATEWAY } from '../support/sandboxes';
import { until } from '../support/until';

const MANY_VARIABLES = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`A${index}`, 'x'.repeat(60_000)]));

describe('Inside a running sandbox,', () => {
  let gateway: TestGateway;
  let box: RunningSandbox;

  before(async () => {
    findProgram('bwrap');
    gateway = await asDocumented(await startGateway(SANDBOX_GATEWAY));
    box = await runningSandbox(gateway);
  });

  after(async () => {
    await box.end();
    await gateway.stop();
  });

  const get = (path: string) => box.get(path);
  const post = (path: string, body: unknown) => box.post(path, body);
  const run = (command: string, more: object = {}) => box.run(command, more);
  const ended = (commandId: string) =>
    until(`${commandId} has ended`, async () => {
      const { json } = await get(`/commands/${commandId}`);
      return json.status === 'RUNNING' ? undefined : json;
    });

  describe('a command', () => {
    it('is answered with its output and exit code, even if it fails', async () => {
      const { status, json } = await run('echo out; echo err >&2; exit 7');
      expect(status).to.equal(201);
      expect(json).to.include({ status: 'EXITED', exitCode: 7, stdout: 'out\n', stderr: 'err\n' });
      expect(json.truncated).to.deep.equal({ stdout: false, stderr: false });
      expect(Date.parse(json.endedAt) - Date.parse(json.startedAt)).to.equal(json.durationMs);
      expect((await get(`/commands/${json.commandId}`)).json).to.deep.equal(json);
    });

    it('that exceeds its time limit is killed with all processes that it started', async () => {
      const { status, json } = await run('sleep 5001 & (setsid sleep 5002 &); sleep 5003', { timeoutSeconds: 1 });
      expect(status).to.equal(201);
      expect(json).to.include({ status: 'TIMED_OUT', exitCode: null });
      for (const command of ['sleep 5001', 'sleep 5002', 'sleep 5003'])
        expect(await isRunning(command), command).to.equal(false);
    });

    it('in the background continues, its output can be read from a position, and it receives signals', async () => {
      const command = `trap 'echo bye; exit 3' TERM; echo one; echo two >&2; while :; do sleep 0.05; done`;
      const { status, json } = await run(command, { background: true });
      expect([status, json.status, json.exitCode, json.background.commandId]).to.deep.equal([
        201,
        'RUNNING',
        null,
        json.commandId,
      ]);
      const logs = await until('both lines', async () => {
        const read = (await get(`/commands/${json.commandId}/logs`)).json;
        return read.items.length === 2 ? read : undefined;
      });
      expect(logs.items.map((each: { stream: string; data: string }) => `${each.stream} ${each.data}`)).to.have.members(
        ['stdout one\n', 'stderr two\n'],
      );
      const signalled = await post(`/commands/${json.commandId}/signal`, { signal: 'SIGTERM' });
      expect([signalled.status, signalled.json.noop]).to.deep.equal([200, false]);
      expect(await ended(json.commandId)).to.include({ status: 'EXITED', exitCode: 3 });
      const rest = (await get(`/commands/${json.commandId}/logs?after=${logs.nextAfter}`)).json;
      expect(rest.items.some((each: { data: string }) => each.data.includes('bye'))).to.equal(true);
      expect((await post(`/commands/${json.commandId}/signal`, { signal: 'SIGTERM' })).json.noop).to.equal(true);
    });

    it('is streamed as events, and a client that reconnects continues after its last event', async () => {
      const all = await events(
        await open('/commands', { command: 'echo a; sleep 0.2; echo b >&2; sleep 0.2; echo c' }),
      );
      expect(all.map(({ event, data }) => `${event} ${data.data ?? data.status}`)).to.deep.equal([
        'start RUNNING',
        'stdout a\n',
        'stderr b\n',
        'stdout c\n',
        'exit EXITED',
      ]);
      expect(all.map((each) => each.id)).to.deep.equal([0, 1, 2, 3, undefined]);
      const commandId = all[0]?.data['commandId'];
      const again = await events(await open(`/commands/${commandId}/logs?follow=true&after=1`));
      expect(again.map(({ event, id: sequence }) => `${event} ${sequence}`)).to.deep.equal([
        'stderr 2',
        'stdout 3',
        'exit undefined',
      ]);
    });

    it('continues if the client that reads its events disconnects', async () => {
      const reading = await open('/commands', {
        command: 'echo here; while [ ! -e release ]; do sleep 0.05; done; echo done',
      });
      const pieces = reading[Symbol.asyncIterator]();
      let seen = '';
      while (!seen.includes('here')) seen += String((await pieces.next()).value);
      reading.destroy();
      const commandId = /"commandId":"([^"]+)"/.exec(seen)?.[1] ?? '';
      await run('touch release');
      expect((await ended(commandId)).stdout).to.equal('here\ndone\n');
    });

    for (const [what, body, param] of [
      ['no text', {}, 'command'],
      ['an empty text', { command: '' }, 'command'],
      ['a NUL', { command: 'a\0b' }, 'command'],
      ['a time limit of 0', { command: ':', timeoutSeconds: 0 }, 'timeoutSeconds'],
      ['a missing folder', { command: ':', cwd: 'nowhere' }, 'cwd'],
      ['an invalid name of a variable', { command: ':', env: { 'A=B': 'c' } }, 'env.A=B'],
      ['an unknown field', { command: ':', shell: 'bash' }, 'shell'],
      ['a text longer than one argument may be', { command: ': '.padEnd(131_072, 'x') }, 'command'],
      ['a variable longer than one argument may be', { command: ':', env: { A: 'x'.repeat(131_072) } }, 'env.A'],
      ['too many variables', { command: ':', env: MANY_VARIABLES }, 'env'],
    ] as const) {
      it(`with ${what} gets 400 COMMAND_INVALID`, async () => {
        const { status, json } = await post('/commands', body);
        expect([status, json.error.code, json.error.param]).to.deep.equal([400, 'COMMAND_INVALID', param]);
      });
    }

    it('has no network: it reaches neither the admin listener nor the public one, and its offering has no ports', async () => {
      const [offering] = (await gateway.call('/v1/offerings', { method: 'GET', key: box.key })).json;
      expect(offering.capabilities).to.deep.equal({ exec: true, backgroundExec: true, files: true, ports: false });
      expect((await get('/ports/8000')).json.error.code).to.equal('NOT_SUPPORTED');
      for (const url of [gateway.adminUrl, gateway.url]) {
        const ask = `fetch('${url}/healthz').then((a) => console.log(a.status), (e) => console.log(e.cause.code))`;
        const { json } = await run(`"${NODE_INSIDE}" -e "${ask}"`);
        expect(json.stdout).to.equal('ECONNREFUSED\n');
      }
    });

    it('gets the same refusal for a working folder that exists only on the host as for a missing folder', async () => {
      const answers = await Promise.all([gateway.dataFolder, '/nowhere'].map((cwd) => run('pwd', { cwd })));
      const [first, second] = answers.map(({ status, json }) => [status, json.error]);
      expect(first).to.deep.equal(second);
    });

    it('with an unknown id gets 404', async () => {
      const { status } = await get(`/commands/${box.id}`);
      expect(status).to.equal(404);
    });
  });

  const open = async (path: string, body?: object) => {
    const { statusCode, body: reading } = await request(`${gateway.url}${box.base}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'x-api-key': box.key, accept: 'text/event-stream', 'content-type': 'application/json' },
      body: body === undefined ? null : JSON.stringify(body),
    });
    expect(statusCode).to.equal(body === undefined ? 200 : 201);
    return reading;
  };

  interface Told {
    readonly event: string;
    readonly id: number | undefined;
    readonly data: Record<string, string>;
  }

  async function events(reading: { text(): Promise<string> }): Promise<Told[]> {
    const blocks = (await reading.text()).split('\n\n').filter((block) => block !== '');
    return blocks.map((block) => {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1];
      const sequence = field('id');
      return {
        event: field('event') ?? '',
        id: sequence === undefined ? undefined : Number(sequence),
        data: JSON.parse(field('data') ?? '{}'),
      };
    });
  }

  describe('a file', () => {
    it('is written, read, listed and removed', async () => {
      const written = await post('/files', { path: 'a/b.txt', content: 'grüße' });
      expect([written.status, written.json]).to.deep.equal([201, { path: 'a/b.txt', byteLength: 7 }]);
      const read = await get('/files?path=a/b.txt');
      expect(read.json).to.deep.equal({ path: 'a/b.txt', content: 'grüße', encoding: 'utf8', byteLength: 7 });
      const { json } = await get('/files/list?path=a');
      expect(json.items[0]).to.include({ path: 'a/b.txt', type: 'file', byteLength: 7 });
      expect((await gateway.call(`${box.base}/files?path=a`, { method: 'DELETE', key: box.key })).status).to.equal(204);
      expect((await get('/files?path=a/b.txt')).json.error.code).to.equal('FILE_NOT_FOUND');
    });

    it('of 4 MB is accepted as base64, and invalid base64 is refused', async () => {
      const content = Buffer.alloc(4 * 1_048_576, 7).toString('base64');
      const written = await post('/files', { path: 'large', content, encoding: 'base64' });
      expect(written.status, written.text).to.equal(201);
      expect(written.json.byteLength).to.equal(4 * 1_048_576);
      for (const wrong of [`${content.slice(1)}!`, 'A', 'AB=', 'AB===', 'A=BC', '====']) {
        const answer = await post('/files', { path: 'large', content: wrong, encoding: 'base64' });
        expect(answer.json.error.code, answer.text).to.equal('INVALID_FIELD');
      }
      for (const right of ['', 'AB', 'AB==', 'ABC', 'ABC=', 'ABCD']) {
        const answer = await post('/files', { path: 'small', content: right, encoding: 'base64' });
        expect(answer.status, answer.text).to.equal(201);
      }
    });

    it('is transferred unchanged as base64 and as raw bytes', async () => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, index) => index));
      await post('/files', { path: 'bytes', content: bytes.toString('base64'), encoding: 'base64' });
      expect((await get('/files?path=bytes&encoding=base64')).json.content).to.equal(bytes.toString('base64'));
      expect((await get('/files?path=bytes')).json.error).to.include({ code: 'INVALID_FIELD', param: 'encoding' });
      const large = Buffer.alloc(6_000_000, 'raw');
      const put = await gateway.call(`${box.base}/files/content?path=large`, {
        method: 'PUT',
        key: box.key,
        body: large,
      });
      expect([put.status, put.json.byteLength]).to.deep.equal([201, 6_000_000]);
      const { body, headers } = await request(`${gateway.url}${box.base}/files/content?path=large`, {
        headers: { 'x-api-key': box.key },
      });
      expect(large.equals(Buffer.from(await body.arrayBuffer()))).to.equal(true);
      expect(headers).to.include({ 'content-security-policy': 'sandbox', 'content-disposition': 'attachment' });
      expect((await get('/files?path=large')).json.error.code).to.equal('FILE_TOO_LARGE');
    });

    it('that grows during a download is returned with its length at the start, and the next download is complete too', async () => {
      const { json } = await run('while :; do echo x >> grows; done', { background: true });
      await until('it grows', async () => (await get('/files/list')).text.includes('grows'));
      for (let again = 0; again < 5; again += 1) {
        const { statusCode, headers, body } = await request(`${gateway.url}${box.base}/files/content?path=grows`, {
          headers: { 'x-api-key': box.key },
        });
        expect(statusCode).to.equal(200);
        expect((await body.arrayBuffer()).byteLength).to.equal(Number(headers['content-length']));
      }
      await post(`/commands/${json.commandId}/signal`, { signal: 'SIGKILL' });
      await gateway.call(`${box.base}/files?path=grows`, { method: 'DELETE', key: box.key });
    });

    it('that is too large gets 413', async () => {
      const raw = await gateway.call(`${box.base}/files/content?path=x`, {
        method: 'PUT',
        key: box.key,
        body: Buffer.alloc(20_971_521),
      });
      expect([raw.status, raw.json.error.code]).to.deep.equal([413, 'FILE_TOO_LARGE']);
      const asJson = await post('/files', { path: 'x', content: 'x'.repeat(4_194_305) });
      expect([asJson.status, asJson.json.error.code]).to.deep.equal([413, 'FILE_TOO_LARGE']);
    });

    it('outside the sandbox gets PATH_INVALID: a path with "..", NUL or a kernel folder, or a link to such a folder', async () => {
      await run('ln -sf /proc/self/environ out; ln -sfn / top');
      for (const path of ['../x', 'a/../../x', '/proc/version', 'a\0b', 'out', 'top/proc/version']) {
        const answers = [
          await get(`/files?path=${encodeURIComponent(path)}`),
          await get(`/files/content?path=${encodeURIComponent(path)}`),
          await post('/files', { path, content: 'x' }),
        ];
        expect(answers.map(({ status, json }) => `${status} ${json.error.code}`)).to.deep.equal(
          answers.map(() => '400 PATH_INVALID'),
        );
      }
    });
  });

  describe('every action', () => {
    it('is recorded as an operation, and no operation stays open', async () => {
      const { json } = await get('/audit?kind=operations&pageSize=100');
      const types = json.items.map(({ type }: { type: string }) => type);
      expect(types).to.include.members(['EXEC', 'SIGNAL', 'FILE_READ', 'FILE_WRITE', 'FILE_LIST', 'FILE_DELETE']);
      expect(json.items.filter(({ status }: { status: string }) => status === 'RUNNING')).to.deep.equal([]);
    });
  });
});
