import { strict as assert } from 'node:assert';
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { pino } from 'pino';
import { compileCheck } from '../../../../../core/settings';
import { processes } from '../../../../../plugins/sandbox/suppliers/process';
import {
  FileFailure,
  type InstanceReference,
  Rejected,
  type SupplierDriver,
} from '../../../../../plugins/sandbox/suppliers/supplier';
import { endInstancesOf } from '../../../../support/instances';
import { findProgram } from '../../../../support/programs';
import { rejection } from '../../../../support/rejection';

const MIB = 2 ** 20;
const SPEC = { cpu: 1, memoryGiB: 0.125, volumeGiB: 1 / 64, gpu: [], ports: false, settings: {} };

describe('the files of an instance of the process driver with bubblewrap', function () {
  this.timeout(60_000);
  let dataFolder: string;
  let driver: SupplierDriver;
  let instance: InstanceReference;
  const lines: string[] = [];

  const open = (settings: object = {}): Promise<SupplierDriver> => {
    const checked = compileCheck<never>(processes.schema)({ isolation: 'bubblewrap', ...settings });
    if ('problems' in checked) throw new Error(JSON.stringify(checked.problems));
    const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
    return processes.open(checked.value, { log, dataFolder });
  };

  const create = (spec: object = {}, by = driver): Promise<InstanceReference> =>
    by.create({ ...SPEC, ...spec }, { name: `tg-${randomUUID()}-1`, tags: {}, birthTtlSeconds: 600 });

  before(async () => {
    findProgram('bwrap');
    dataFolder = await mkdtemp(join(tmpdir(), 'tollgate-disk-'));
    driver = await open();
    instance = await create();
  });

  after(async () => {
    await driver?.close();
    await endInstancesOf(dataFolder);
    await rm(dataFolder, { recursive: true, force: true });
  });

  const shell = async (command: string): Promise<string> => {
    const { output } = await driver.exec(instance, { id: randomUUID(), command, env: {} });
    let printed = '';
    for await (const { bytes } of output) printed += bytes.toString();
    return printed.trim();
  };

  /** Returns the number of bytes that all instances have written to the machine's disk. */
  const onDisk = async (): Promise<number> =>
    Number((await promisify(execFile)('du', ['-sB1', join(dataFolder, 'instances')])).stdout.split('\t')[0]);

  for (const folder of ['/workspace', '/tmp', '/data', '/dev/shm']) {
    it(`use no more of ${folder} than the offering allows, and nothing of the machine's disk`, async () => {
      await shell(`mkdir -p ${folder}; head -c 60000000 /dev/zero > ${folder}/large`);
      assert.equal(await shell(`stat -c %s ${folder}/large; rm ${folder}/large`), String(16 * MIB));
      assert.ok((await onDisk()) < MIB, `${await onDisk()} bytes`);
    });
  }

  it('are counted even if they were removed while they are open', async () => {
    const fill = ['exec 4>a; rm a; head -c 10000000 /dev/zero >&4', 'exec 5>b; rm b; head -c 10000000 /dev/zero >&5'];
    assert.match(await shell(`${fill.join('; ')} || echo full`), /full/);
    assert.ok((await onDisk()) < MIB, `${await onDisk()} bytes`);
  });

  it('are refused by the files API if there is no room', async () => {
    const error = await rejection(driver.files.write(instance, 'large', Buffer.alloc(17 * MIB)));
    assert.ok(error instanceof FileFailure && error.reason === 'no-space', String(error));
    await driver.files.remove(instance, 'large');
    await driver.files.write(instance, 'small', Buffer.from('fits'));
    assert.equal(await shell('cat small'), 'fits');
  });

  it('cannot be created in the folder of devices', async () => {
    assert.equal(await shell('touch /dev/file 2>/dev/null || echo refused; echo kept > /dev/null'), 'refused');
  });

  it('cannot use more memory through a namespace of their own', async () => {
    const mount = 'mkdir -p /data && unshare --user --map-root-user --mount mount -t tmpfs none /data';
    assert.equal(await shell(`(${mount}) 2>/dev/null && echo mounted || echo refused`), 'refused');
  });

  it('may use half of the memory if the offering names no volume, and never more than the memory', async () => {
    const error = await rejection(create({ volumeGiB: 1 }));
    assert.ok(error instanceof Rejected, String(error));
    assert.match(error.message, /in memory.*volumeGiB/);
    const given = instance;
    instance = await create({ volumeGiB: 0 });
    await shell('head -c 100000000 /dev/zero > large');
    assert.equal(await shell('stat -c %s large'), String(64 * MIB));
    await driver.terminate(instance);
    instance = given;
  });

  it('are on disk with `files: disk`, and the driver warns that the disk is not bounded', async () => {
    const before = await onDisk();
    const onDisks = await open({ files: 'disk' });
    assert.ok(lines.some((line) => line.includes('the disk of instances is not bounded')));
    const other = await create({ volumeGiB: 1 }, onDisks);
    await onDisks.files.write(other, 'large', Buffer.alloc(2 * MIB, 1));
    assert.ok((await onDisk()) >= before + 2 * MIB);
    await onDisks.terminate(other);
    await onDisks.close();
  });
});
