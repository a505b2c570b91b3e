import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { type Answered, startGateway, type TestGateway } from '../support/gateway';
import { createSandbox, creation, SANDBOX_GATEWAY, terminate, waitForState } from '../support/sandboxes';
import { until } from '../support/until';

const NO_SANDBOX = '/v1/sandboxes/019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d';
const LARGEST_FILE = 20 * 1_048_576;

/** A request whose announced body is never sent, except for its first bytes. */
interface Unfinished {
  readonly socket: Socket;
  /** The status of the answer; undefined while there is none. */
  status(): number | undefined;
}

/** Returns the CPU time of the gateway's main thread. Other programs do not count, and no single block can be longer than the increase. */
function cpuMs({ pid }: TestGateway): number {
  const [nanoseconds] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ');
  return Number(nanoseconds) / 1e6;
}

describe("Bodies of the gateway's own API", function () {
  this.timeout(90_000);
  let gateway: TestGateway;
  let key: string;
  let id: string;
  const opened: Socket[] = [];

  before(async () => {
    gateway = await startGateway({ ...SANDBOX_GATEWAY });
    ({ key } = await gateway.newCustomer('5'));
    ({ id } = await createSandbox(gateway, key, creation('bodies')));
    await waitForState(gateway, key, id, 'RUNNING');
  });
  afterEach(() => {
    for (const socket of opened.splice(0)) socket.destroy();
  });
  after(async () => {
    await terminate(gateway, key, id);
    await gateway.stop();
  });

  const beginBody = (target: string, of: { key: string; announced: number; sent?: number }): Unfinished => {
    const socket = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    opened.push(socket);
    let text = '';
    socket.on('error', () => undefined);
    socket.on('data', (bytes) => (text += bytes.toString()));
    const head = [`${target} HTTP/1.1`, 'Host: x', `x-api-key: ${of.key}`, 'content-type: application/json'];
    socket.write(`${head.join('\r\n')}\r\ncontent-length: ${of.announced}\r\n\r\n`);
    socket.write(Buffer.alloc(of.sent ?? 0, ' '));
    return { socket, status: () => (text === '' ? undefined : Number(text.slice(9, 12))) };
  };
  const statusOf = (request: Unfinished) => until('an answer', () => request.status());
  const post = (path: string, body: string) => gateway.call(`/v1/sandboxes/${id}${path}`, { key, body });

  function expectSmallRefusal(answer: Answered, code: string): void {
    expect(answer.status, answer.text.slice(0, 500)).to.equal(400);
    expect(answer.json.error.code).to.equal(code);
    expect(answer.text.length).to.be.below(8_192);
    expect(answer.json.error.details.problems ?? []).to.have.lengthOf.at.most(10);
  }

  describe('for a sandbox that does not exist', () => {
    for (const target of [
      `PUT ${NO_SANDBOX}/files/content?path=a`,
      `POST ${NO_SANDBOX}/files`,
      `POST ${NO_SANDBOX}/commands`,
      `POST ${NO_SANDBOX}/commands/019a9d5e-3c5c-7a52-8f7e-0d4f6a1b2c3d/signal`,
      `POST ${NO_SANDBOX}/suspend`,
      `DELETE ${NO_SANDBOX}`,
    ]) {
      it(`get 404 before they arrive: ${target}`, async () => {
        const { key: penniless } = await gateway.newCustomer('0');
        expect(await statusOf(beginBody(target, { key: penniless, announced: 1_000 }))).to.equal(404);
      });
    }
  });

  describe('with excessive JSON', () => {
    it('of 550,000 members get 400 and a short answer', async () => {
      const members = Array.from({ length: 550_000 }, (_, index) => `"A${index}":0`);
      expectSmallRefusal(await post('/files', `{${members.join(',')}}`), 'INVALID_JSON');
    });

    it('of 280,000 environment variables get 400 and a short answer', async () => {
      const env = Array.from({ length: 280_000 }, (_, index) => `"A${index}":1`);
      expectSmallRefusal(await post('/commands', `{"command":"true","env":{${env.join(',')}}}`), 'INVALID_JSON');
    });

    it('of 8 MB of nested arrays get 400 and a short answer', async () => {
      expectSmallRefusal(await post('/files', '['.repeat(4_000_000) + ']'.repeat(4_000_000)), 'INVALID_JSON');
    });

    it('block the event loop for less than 50 ms, whether members, environment variables or arrays', async () => {
      const named = (count: number) => Array.from({ length: count }, (_, index) => `"A${index}":1`).join(',');
      const bodies = [
        ['/commands', `{"command":"true","env":{${named(280_000)}}}`],
        ['/files', `{${named(550_000)}}`],
        ['/files', '['.repeat(4_000_000) + ']'.repeat(4_000_000)],
      ] as const;
      for (const [path, body] of bodies) {
        const takenMs: number[] = [];
        for (let tries = 0; tries < 3; tries += 1) {
          const beforeMs = cpuMs(gateway);
          expect((await post(path, body)).status).to.equal(400);
          takenMs.push(cpuMs(gateway) - beforeMs);
        }
        expect(Math.min(...takenMs), path).to.be.below(50);
      }
    });

    it('of 65 levels get 400, and 64 levels are read', async () => {
      const nested = (levels: number) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
      expectSmallRefusal(await post('/files', nested(65)), 'INVALID_JSON');
      expectSmallRefusal(await post('/files', nested(64)), 'INVALID_FIELD');
    });

    it('of 9,000 unknown fields get an error that names the first ten', async () => {
      const fields = Array.from({ length: 9_000 }, (_, index) => `"A${index}":0`);
      const answer = await post('/files', `{${fields.join(',')}}`);
      expectSmallRefusal(answer, 'INVALID_FIELD');
      expect(answer.json.error.details.problems).to.have.length(10);
    });

    it('of a name of 60 KB get an error that shortens the name', async () => {
      const body = { [`${'x'.repeat(60_000)}`]: 1, selection: { ['y'.repeat(1_000)]: 1 } };
      expectSmallRefusal(await gateway.call('/v1/quotes', { key, body }), 'INVALID_FIELD');
      const { ['selection']: selection } = body;
      const asked = await gateway.call('/v1/sandboxes', { key, body: { idempotencyKey: 'a', selection } });
      expectSmallRefusal(asked, 'SELECTION_INVALID');
    });

    it('have the same bounds on the admin listener', async () => {
      const fields = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`A${index}`, 0]));
      expectSmallRefusal(await gateway.admin('POST', '/admin/v1/accounts', fields), 'INVALID_FIELD');
    });
  });

  it('of one account use at most a quarter of the memory for bodies, which leaves room for other accounts', async () => {
    const uploads = Array.from({ length: 5 }, () =>
      beginBody(`PUT /v1/sandboxes/${id}/files/content?path=a`, { key, announced: LARGEST_FILE, sent: 1_000_000 }),
    );
    await until('two refusals', () => uploads.filter((each) => each.status() === 503).length === 2 || undefined);
    const { key: other } = await gateway.newCustomer('5');
    const { id: others } = await createSandbox(gateway, other, creation('bodies'));
    await waitForState(gateway, other, others, 'RUNNING');
    const written = await gateway.call(`/v1/sandboxes/${others}/files/content?path=a`, {
      method: 'PUT',
      key: other,
      headers: { 'content-type': 'application/octet-stream' },
      body: Buffer.alloc(1_000_000, 'x'),
    });
    expect(written.status, written.text).to.equal(201);
    await terminate(gateway, other, others);
    expect(uploads.filter((each) => each.status() === undefined)).to.have.length(3);
    for (const { socket } of uploads) socket.destroy();
    // The memory is free again after the uploads have broken off.
    await until('room for a file', async () => {
      const { status } = await gateway.call(`/v1/sandboxes/${id}/files/content?path=a`, {
        method: 'PUT',
        key,
        headers: { 'content-type': 'application/octet-stream' },
        body: Buffer.alloc(LARGEST_FILE, 'x'),
      });
      return status === 201 || undefined;
    });
  });
});
