import { strict as assert } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { tmpdir } from 'node:os';
import { buffer } from 'node:stream/consumers';
import { type Logger, pino } from 'pino';
import { compileCheck } from '../../../../../core/base/settings';
import { docker } from '../../../../../plugins/sandbox/suppliers/docker/driver';
import {
  FileFailure,
  type InstanceReference,
  Rejected,
  type SupplierDriver,
} from '../../../../../plugins/sandbox/suppliers/supplier';
import type { DockerEngine } from '../../../../support/docker';
import { failToStart } from '../../../../support/gateway';
import { rejection } from '../../../../support/rejection';
import { sharedDocker } from '../../../../support/shared';

const MIB = 2 ** 20;
const SPEC = { cpu: 0.5, memoryGiB: 0.125, volumeGiB: 0, gpu: [], ports: false };

describe('an instance of the Docker driver', function () {
  this.timeout(60_000);
  let engine: DockerEngine;

  before(async () => {
    engine = await sharedDocker();
  });

  const open = (settings: object = {}, log: Logger = pino({ level: 'silent' })): Promise<SupplierDriver> => {
    const checked = compileCheck<never>(docker.schema)({ socket: engine.socket, ...settings });
    if ('problems' in checked) throw new Error(JSON.stringify(checked.problems));
    return docker.open(checked.value, { log, dataFolder: tmpdir() });
  };

  /** Makes a log and the list of its lines. */
  const listen = () => {
    const lines: string[] = [];
    return { lines, log: pino({ level: 'info' }, { write: (line: string) => void lines.push(line) }) };
  };

  type Shell = (command: string) => Promise<string>;

  /** Makes an instance with these settings of its offering, for the time of the test. */
  const within = async (
    offering: object,
    test: (shell: Shell, driver: SupplierDriver, instance: InstanceReference) => Promise<void>,
    { spec = {}, driver: opened }: { readonly spec?: object; readonly driver?: SupplierDriver } = {},
  ) => {
    const driver = opened ?? (await open());
    const settings = { image: engine.image, ...offering };
    const options = { name: `tg-${randomUUID()}-1`, tags: {}, birthTtlSeconds: 600 };
    const instance = await driver.create({ ...SPEC, ...spec, settings }, options);
    try {
      const shell: Shell = async (command) => {
        const { output, exit } = await driver.exec(instance, { id: randomUUID(), command, env: {} });
        let printed = '';
        for await (const { bytes } of output) printed += bytes.toString();
        await exit;
        return printed.trim();
      };
      await test(shell, driver, instance);
    } finally {
      await driver.terminate(instance);
      await driver.close();
    }
  };

  const volumes = async (): Promise<readonly unknown[]> =>
    ((await engine.ask('GET', '/volumes')).body as { Volumes: unknown[] | null }).Volumes ?? [];

  it('has no capability, cannot gain one and leaves no core dumps', () =>
    within({}, async (shell) => {
      const status = await shell('grep -E "^(Cap|NoNewPrivs)" /proc/self/status');
      assert.match(status, /CapPrm:\s+0{16}\n(.*\n)*CapBnd:\s+0{16}\n(.*\n)*NoNewPrivs:\s+1/);
      assert.equal(await shell('ulimit -H -c'), '0');
    }));

  it('limits each process to 4096 open files, or to the number in its offering, and no process can raise the limit', async () => {
    await within({}, async (shell) => assert.equal(await shell('ulimit -H -n'), '4096'));
    await within({ ulimits: { nofile: 100, fsize: MIB } }, async (shell) => {
      assert.equal(await shell('ulimit -H -n; ulimit -n 200 2>/dev/null || echo refused'), '100\nrefused');
      await shell('head -c 2000000 /dev/zero > large');
      assert.equal(await shell('stat -c %s large'), String(MIB));
    });
  });

  it('with a read-only root can write to /workspace and /tmp only, up to their sizes', async () => {
    const before = (await volumes()).length;
    await within(
      { readOnlyRoot: true },
      async (shell, driver, instance) => {
        assert.equal(await shell('touch /data 2>/dev/null || echo refused'), 'refused');
        for (const folder of ['/workspace', '/tmp']) {
          await shell(`head -c 50000000 /dev/zero > ${folder}/large`);
          assert.equal(await shell(`stat -c %s ${folder}/large`), String(16 * MIB), folder);
          await shell(`rm ${folder}/large`);
        }
        await driver.files.write(instance, 'a/b', Buffer.from('seen'));
        assert.equal(await shell('cat a/b; echo more > a/c; stat -c %u a/b'), 'seen1000');
        const { content } = await driver.files.read(instance, 'a/c');
        assert.equal((await buffer(content)).toString(), 'more\n');
        await driver.suspend(instance);
        await driver.resume(instance);
        assert.equal(await shell('cat a/b'), 'seen');
        const outside = await rejection(driver.files.write(instance, '/data/x', Buffer.from('x')));
        assert.ok(outside instanceof FileFailure && outside.reason === 'not-allowed', String(outside));
        const large = await rejection(driver.files.write(instance, 'large', Buffer.alloc(17 * MIB)));
        assert.ok(large instanceof FileFailure && large.reason === 'no-space', String(large));
      },
      { spec: { volumeGiB: 1 / 64 } },
    );
    assert.equal((await volumes()).length, before);
  });

  it('has no disk limit if the engine cannot set one, which the log reports at the start', async () => {
    const { lines, log } = listen();
    const driver = await open({}, log);
    assert.ok(
      lines.some((line) => line.includes('the disk of instances is not bounded')),
      lines.join(''),
    );
    await within({}, async (shell) => assert.equal(await shell('echo runs'), 'runs'), {
      spec: { volumeGiB: 1 },
      driver,
    });
  });

  it('is refused if the engine cannot set the disk limit of its offering', async () => {
    const error = await rejection(within({ limitVolume: true }, async () => {}, { spec: { volumeGiB: 1 } }));
    assert.ok(error instanceof Rejected, String(error));
  });

  it('runs with the configured runtime, and fails to start with one that the engine does not know', async () => {
    await within({}, async (shell) => assert.equal(await shell('echo runs'), 'runs'), {
      driver: await open({ runtime: 'runc' }),
    });
    const error = (await rejection(open({ runtime: 'runsc' }))) as Error;
    assert.equal(error.name, 'StartFailure');
    assert.match(error.message, /runtime "runsc".* knows .*runc/);
  });

  it('is not offered if the settings name a runtime that the engine does not know', async () => {
    const suppliers = { local: { driver: 'docker', socket: engine.socket, runtime: 'runsc' } };
    const upstreams = { none: { url: 'http://127.0.0.1:9' } };
    const { code, output } = await failToStart({ upstreams, plugins: { sandbox: { suppliers } } });
    assert.equal(code, 78, output);
    assert.match(output, /plugins\.sandbox\.suppliers\.local: .*runtime "runsc"/);
  });
});
