import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { pino } from 'pino';
import { compileCheck } from '../../../../../core/base/settings';
import { docker } from '../../../../../plugins/sandbox/suppliers/docker/driver';
import {
  type InstanceReference,
  PortClosed,
  type SupplierDriver,
} from '../../../../../plugins/sandbox/suppliers/supplier';
import type { DockerEngine } from '../../../../support/docker';
import { rejection } from '../../../../support/rejection';
import { sharedDocker } from '../../../../support/shared';
import { until } from '../../../../support/until';

describe('the network of an instance of the Docker driver', function () {
  this.timeout(60_000);
  let engine: DockerEngine;
  let driver: SupplierDriver;
  const instances: InstanceReference[] = [];
  const lines: string[] = [];

  const open = (settings: object = {}): Promise<SupplierDriver> => {
    const checked = compileCheck<never>(docker.schema)({ socket: engine.socket, ...settings });
    if ('problems' in checked) throw new Error(JSON.stringify(checked.problems));
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    return docker.open(checked.value, { log, dataFolder: tmpdir() });
  };

  before(async () => {
    engine = await sharedDocker();
    driver = await open();
  });

  after(async () => {
    for (const instance of instances) await driver.terminate(instance);
    await driver?.close();
  });

  const create = async (by = driver): Promise<InstanceReference> => {
    const spec = { cpu: 0.5, memoryGiB: 0.0625, volumeGiB: 0, gpu: [], ports: true, settings: { image: engine.image } };
    const instance = await by.create(spec, { name: `tg-${randomUUID()}-1`, tags: {}, birthTtlSeconds: 600 });
    instances.push(instance);
    return instance;
  };

  const start = (instance: InstanceReference, command: string) =>
    driver.exec(instance, { id: randomUUID(), command, env: {} });

  const shell = async (instance: InstanceReference, command: string): Promise<string> => {
    let printed = '';
    for await (const { bytes } of (await start(instance, command)).output) printed += bytes.toString();
    return printed.trim();
  };

  const addressesOfMachine = (): readonly string[] =>
    Object.values(networkInterfaces())
      .flatMap((all) => all ?? [])
      .filter(({ family }) => family === 'IPv4')
      .map(({ address }) => address);

  /** Lists the addresses of instances in each network of the engine, and those of the machine there. */
  const addressesOfNetworks = async (): Promise<readonly string[]> => {
    const networks = (await engine.ask('GET', '/networks')).body as { Id: string }[];
    const shown = await Promise.all(networks.map(({ Id }) => engine.ask('GET', `/networks/${Id}`)));
    return [...JSON.stringify(shown).matchAll(/"(?:IPv4Address|Gateway)":"([\d.]+)/g)].map(
      ([, address]) => address ?? '',
    );
  };

  it('reaches no server that listens on an address of the machine', async () => {
    const instance = await create();
    const server: Server = createServer((socket) => socket.end('of the machine\n')).listen(0, '0.0.0.0');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      const addresses = [...addressesOfMachine(), ...(await addressesOfNetworks())];
      for (const address of new Set(addresses))
        assert.ok(
          !(await shell(instance, `nc -w 2 ${address} ${port} 2>&1 </dev/null`)).includes('of the machine'),
          address,
        );
    } finally {
      server.close();
    }
  });

  it('reaches no other instance', async () => {
    const [one, other] = [await create(), await create()];
    await start(other, 'echo of the other > index.html; exec httpd -f -p 8000');
    await until('the server is up', async () => (await get(other, 8_000)).includes('of the other'));
    const own = (await shell(other, 'ip -4 -o addr')).match(/(?<=inet )[\d.]+/g) ?? [];
    for (const address of new Set([...own, ...(await addressesOfNetworks())])) {
      const ask = `printf 'GET /index.html HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${address} 8000 2>&1`;
      assert.ok(!(await shell(one, ask)).includes('of the other'), address);
    }
  });

  const get = async (instance: InstanceReference, port: number): Promise<string> => {
    const address = await driver.dialPort(instance, port);
    if (address.connect === undefined)
      return (await fetch(`http://${address.host}:${address.port}/index.html`).catch(() => undefined))?.text() ?? '';
    try {
      const socket = await address.connect();
      socket.end('GET /index.html HTTP/1.0\r\n\r\n');
      return await text(socket);
    } catch (error) {
      if (error instanceof PortClosed) return '';
      throw error;
    }
  };

  it("lets the gateway reach even a server that listens only on the instance's loopback address", async () => {
    const instance = await create();
    await start(instance, 'echo here > index.html; exec httpd -f -p 127.0.0.1:8001');
    await until('the server is up', async () => (await get(instance, 8_001)).includes('here'));
    const closed = await driver.dialPort(instance, 8_002);
    assert.ok((await rejection(Promise.resolve(closed.connect?.()))) instanceof PortClosed);
  });

  it('is the configured network, and the log warns that this network reaches the machine', async () => {
    const other = await open({ network: 'tollgate-test' });
    const instance = await create(other);
    assert.ok(lines.some((line) => line.includes('instances reach what listens on this machine')));
    await start(instance, 'echo in the network > index.html; exec httpd -f -p 8003');
    await until('the server is up', async () => (await get(instance, 8_003)).includes('in the network'));
    assert.doesNotMatch((await other.dialPort(instance, 8_003)).host, /^127/);
    await other.close();
  });
});
