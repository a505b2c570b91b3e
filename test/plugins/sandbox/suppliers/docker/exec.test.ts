import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { pino } from 'pino';
import { docker } from '../../../../../plugins/sandbox/suppliers/docker/driver';
import {
  Ambiguous,
  type InstanceReference,
  NotRunning,
  NotSupported,
  type SupplierDriver,
} from '../../../../../plugins/sandbox/suppliers/supplier';
import { rejection } from '../../../../support/rejection';

const RUNTIME = 'OCI runtime exec failed: exec failed: unable to start container process:';

/** The error of Docker 20.10 if an instance has no room for the threads of the runtime itself. */
const FULL = [
  `${RUNTIME} read init-p: connection reset by peer: unknown`,
  `${RUNTIME} fork/exec /proc/self/exe: resource temporarily unavailable: unknown`,
  'procReady not received: unknown',
];

const LACKING = [
  `${RUNTIME} exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown`,
  `${RUNTIME} exec: "sh": executable file not found in $PATH: unknown`,
  `${RUNTIME} exec: "/bin/sh": permission denied: unknown`,
  `${RUNTIME} exec /bin/sh: exec format error: unknown`,
];

const INSTANCE: InstanceReference = { id: 'one', name: 'tg-one-1' };

/** A fake engine that runs programs: each start gets the next scripted outcome, or succeeds. */
class FakeEngine {
  starts = 0;
  failures: string[] = [];
  readonly #failed = new Set<string>();
  readonly #server: Server;

  constructor(readonly socket: string) {
    this.#server = createServer(({ url = '' }, response) => {
      const id = /^\/exec\/(\w+)\/json$/.exec(url)?.[1] ?? '';
      const failed = this.#failed.has(id);
      const body = url.startsWith('/exec/')
        ? { Running: false, ExitCode: failed ? 126 : 0, Pid: failed ? 0 : 4711 }
        : { Id: `exec${this.starts}` };
      response.writeHead(url.startsWith('/exec/') ? 200 : 201, { 'content-type': 'application/json' });
      response.end(JSON.stringify(body));
    });
    this.#server.on('upgrade', ({ url = '' }, socket: Duplex) => this.#start(url, socket));
  }

  async listen(): Promise<void> {
    await once(this.#server.listen(this.socket), 'listening');
  }

  close(): void {
    this.#server.close();
  }

  #start(url: string, socket: Duplex): void {
    const failure = this.failures.shift();
    if (failure !== undefined) this.#failed.add(/^\/exec\/(\w+)/.exec(url)?.[1] ?? '');
    this.starts += 1;
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n');
    socket.end(failure === undefined ? '' : frameOf(failure));
  }
}

function frameOf(text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = 1;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

describe('the Docker driver, if the engine cannot start a program in an instance', () => {
  let folder: string;
  let engine: FakeEngine;
  let driver: SupplierDriver;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tollgate-fake-engine-'));
    engine = new FakeEngine(join(folder, 'engine.sock'));
    await engine.listen();
    const settings = { socket: engine.socket, network: 'tollgate', answersWithin: '10s' };
    driver = await docker.open(settings, { log: pino({ level: 'silent' }), dataFolder: folder });
  });
  after(async () => {
    engine?.close();
    await rm(folder, { recursive: true, force: true });
  });
  beforeEach(() => {
    engine.starts = 0;
    engine.failures = [];
  });

  const command = () => ({ id: randomUUID(), command: 'true', env: {} });

  it('signals and inspects a command even if the instance has no free process slot', async () => {
    engine.failures = [...FULL];
    await driver.signal(INSTANCE, randomUUID(), 'SIGKILL');
    assert.equal(engine.starts, FULL.length + 1);
    engine.failures = [...FULL];
    assert.deepEqual(await driver.inspectCommand(INSTANCE, randomUUID()), { kind: 'running' });
  });

  it('reports an unknown outcome for a signal that it could not deliver in many attempts', async () => {
    engine.failures = Array.from({ length: 1_000 }, () => FULL[0] ?? '');
    const error = await rejection(driver.signal(INSTANCE, randomUUID(), 'SIGKILL'));
    assert.ok(error instanceof Ambiguous, String(error));
    assert.match(error.message, /connection reset by peer/);
    assert.ok(engine.starts < 100, `${engine.starts} attempts`);
  });

  it("starts a customer's command only once, and reports its outcome as unknown if the engine's runtime failed", async () => {
    for (const failure of FULL) {
      engine.starts = 0;
      engine.failures = [failure];
      const error = await rejection(driver.exec(INSTANCE, command()));
      assert.ok(error instanceof Ambiguous, String(error));
      assert.equal(engine.starts, 1);
    }
  });

  it('reports that commands are not supported if the image lacks the program, and does not retry', async () => {
    for (const failure of LACKING) {
      engine.starts = 0;
      engine.failures = [failure];
      const error = await rejection(driver.exec(INSTANCE, command()));
      assert.ok(error instanceof NotSupported, String(error));
      engine.failures = [failure];
      assert.ok((await rejection(driver.signal(INSTANCE, randomUUID(), 'SIGTERM'))) instanceof NotSupported);
      assert.equal(engine.starts, 2);
    }
  });

  it('reports that a paused instance is not running', async () => {
    engine.failures = ['Container one is paused, unpause the container before exec'];
    assert.ok((await rejection(driver.exec(INSTANCE, command()))) instanceof NotRunning);
  });
});
