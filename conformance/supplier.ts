import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer, text } from 'node:stream/consumers';
import {
  AlreadyExists,
  type CommandSpec,
  FileFailure,
  InstanceGone,
  type InstanceSpec,
  NotRunning,
  NotSent,
  NotSupported,
  type OutputFrame,
  type PortAddress,
  Rejected,
  type SupplierDriver,
  type SupplierError,
} from '../plugins/sandbox/suppliers/supplier';

export interface SupplierSubject {
  /** Opens the driver. The suite opens it several times, as several gateway processes would. */
  readonly open: () => Promise<SupplierDriver>;
  /** The specification of the instances that the suite creates. They are small and have ports. */
  readonly spec: InstanceSpec;
  /** Returns a shell command that serves its working folder over HTTP on the port, with `index.html` at `/`, until it is killed. */
  readonly webServer: (port: number) => string;
  /** Opens the driver with an unreachable supplier. Absent if the driver needs no connection. */
  readonly openUnreachable?: () => Promise<SupplierDriver>;
}

export interface SupplierCheck {
  readonly name: string;
  /** Runs the check. @throws AssertionError if the driver fails it */
  readonly run: () => Promise<void>;
}

type Capability = 'exec' | 'files' | 'ports' | 'uniqueName' | 'suspend';
type Run = Awaited<ReturnType<typeof begin>>;

const CHECKS: { readonly name: string; readonly needs: readonly Capability[]; run(run: Run): Promise<void> }[] = [];

/** Registers a check. It applies only to drivers that have all capabilities in `needs`. */
function check(name: string, needs: readonly Capability[], run: (run: Run) => Promise<void>): void {
  CHECKS.push({ name, needs, run });
}

/** Returns the checks that a driver must pass, for any test runner. They share one instance and must run in this order, because the last ones end it. */
export function supplierConformance(subject: SupplierSubject): SupplierCheck[] {
  let begun: Promise<Run> | undefined;
  return CHECKS.map(({ name, needs, run }) => ({
    name,
    run: async () => {
      begun ??= begin(subject);
      const shared = await begun;
      const { capabilities } = shared.driver;
      if (needs.every((each) => capabilities[each] !== false && capabilities[each] !== 'none')) await run(shared);
    },
  }));
}

/** Opens the driver and creates the instance that the checks share. */
async function begin(subject: SupplierSubject) {
  const tags = { 'tollgate.environment': `conformance-${randomUUID()}` };
  const ownName = `tg-${randomUUID()}-1`;
  const options = (name = ownName) => ({ name, tags, birthTtlSeconds: 600 });
  const driver = await subject.open();
  const instance = await driver.create(subject.spec, options());
  const start = (command: string, more: Partial<CommandSpec> = {}) =>
    driver.exec(instance, { id: randomUUID(), command, env: {}, ...more });
  const shell = async (command: string, more: Partial<CommandSpec> = {}) => {
    const { output, exit } = await start(command, more);
    return { ...(await collect(output)), ...(await exit) };
  };
  const listed = async () => {
    const found: string[] = [];
    for await (const { reference } of driver.list(tags)) found.push(reference.id);
    return found;
  };
  return { subject, tags, options, driver, instance, start, shell, listed };
}

async function collect(output: AsyncIterable<OutputFrame>): Promise<{ stdout: string; stderr: string }> {
  const kept = { stdout: '', stderr: '' };
  for await (const { stream, bytes } of output) kept[stream] += bytes.toString();
  return kept;
}

const PATIENCE_MS = 30_000;

async function eventually(what: string, condition: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    assert(Date.now() < deadline, `not within ${PATIENCE_MS} ms: ${what}`);
    await new Promise((wake) => setTimeout(wake, 20));
  }
}

type ErrorClass = abstract new (...values: never[]) => SupplierError;

async function fails(promise: Promise<unknown>, expected: ErrorClass): Promise<SupplierError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert(error instanceof expected, `expected ${expected.name}, not ${String(error)}`);
  return error;
}

async function failsFor(promise: Promise<unknown>, reason: FileFailure['reason']): Promise<void> {
  assert.equal(((await fails(promise, FileFailure)) as FileFailure).reason, reason);
}

const refused = ['../x', 'a/../../x', '/workspace/../etc/passwd', '/data/../../x', '..', 'a\0b', '/a\0b'];
const kernel = ['/proc/self/environ', '/proc/1/root', '/sys/kernel', '/dev/null', '/./proc//version'];

check('a created instance runs, with its tags and an incarnation', [], async ({ driver, instance, tags }) => {
  await eventually('it runs', async () => {
    const found = await driver.inspect(instance);
    return found.kind === 'found' && found.state === 'running';
  });
  const found = await driver.inspect(instance);
  assert(found.kind === 'found');
  assert.deepEqual(found.reference, instance);
  assert.equal(found.tags['tollgate.environment'], tags['tollgate.environment']);
  assert.notEqual(found.incarnation, '');
});

check(
  'a repeated create returns the first instance, and creates none',
  ['uniqueName'],
  async ({ driver, instance, subject, options, listed }) => {
    const error = await fails(driver.create(subject.spec, options()), AlreadyExists);
    assert.deepEqual((error as AlreadyExists).reference, instance);
    assert.deepEqual(await listed(), [instance.id]);
  },
);

check(
  "the name of somebody else's instance is refused, and theirs is left alone",
  ['uniqueName'],
  async ({ driver, instance, subject, options }) => {
    const tags = { 'tollgate.environment': 'another' };
    await fails(driver.create(subject.spec, { ...options(), tags }), Rejected);
    assert.equal((await driver.inspect(instance)).kind, 'found');
  },
);

check(
  'five simultaneous creates under one name make one instance',
  ['uniqueName'],
  async ({ driver, subject, options }) => {
    const once = options(`tg-${randomUUID()}-1`);
    const ends = await Promise.allSettled([1, 2, 3, 4, 5].map(() => driver.create(subject.spec, once)));
    const ids = ends.map((end) =>
      end.status === 'fulfilled' ? end.value.id : (end.reason as AlreadyExists).reference?.id,
    );
    assert.equal(new Set(ids).size, 1, `one instance, not ${ids.join(', ')}`);
    assert.equal(ends.filter(({ status }) => status === 'fulfilled').length, 1);
    await driver.terminate({ id: ids[0] ?? '', name: once.name });
  },
);

check('a list has the instances with the tags, and no others', [], async ({ driver, instance, tags, listed }) => {
  assert.deepEqual(await listed(), [instance.id]);
  const others: string[] = [];
  for await (const { reference } of driver.list({ ...tags, more: 'yes' })) others.push(reference.id);
  assert.deepEqual(others, []);
});

check('a request to an unreachable supplier is reported as not sent', [], async ({ subject, tags, options }) => {
  const driver = await subject.openUnreachable?.();
  if (driver === undefined) return;
  const nobody = { id: 'none', name: 'none' };
  await fails(driver.create(subject.spec, options()), NotSent);
  await fails(driver.inspect(nobody), NotSent);
  await fails(driver.list(tags)[Symbol.asyncIterator]().next(), NotSent);
  await fails(driver.terminate(nobody), NotSent);
});

check('a command has separate output, errors and exit code', ['exec'], async ({ shell }) => {
  const ended = await shell('echo out; echo err >&2; exit 7');
  assert.deepEqual(ended, { stdout: 'out\n', stderr: 'err\n', exitCode: 7 });
});

check('a command receives its input, its variables and its folder', ['exec'], async ({ start, shell }) => {
  const ended = await shell('mkdir -p sub/deep && cd sub && cat && echo "$COLOUR $HOME"', {
    stdin: Buffer.from('a\0b\n'),
    env: { COLOUR: 'deep blue' },
  });
  assert.match(ended.stdout, /^a\0b\ndeep blue \/.+\n$/);
  assert.equal((await shell('basename "$(pwd)"', { cwd: 'sub/deep' })).stdout, 'deep\n');
  await failsFor(start('pwd', { cwd: 'nowhere' }), 'not-folder');
});

check('a command does not hang on unread or missing input', ['exec'], async ({ shell }) => {
  assert.equal((await shell('exit 3', { stdin: Buffer.alloc(1_000_000) })).exitCode, 3);
  assert.deepEqual(await shell('cat'), { stdout: '', stderr: '', exitCode: 0 });
});

check("nothing of the gateway's own environment reaches a command", ['exec'], async ({ shell }) => {
  process.env['CONFORMANCE_SECRET'] = 'secret';
  const { stdout } = await shell('env');
  assert(!stdout.includes('CONFORMANCE_SECRET'));
});

check("a command's variables decide nothing about what starts it", ['exec'], async ({ shell }) => {
  const programs = 'for each in sh bwrap env; do printf "#!/bin/sh\\necho outside\\n" > $each; chmod +x $each; done';
  await shell(programs);
  assert.equal((await shell('echo inside', { env: { PATH: '.' } })).stdout, 'inside\n');
  await shell('rm sh bwrap env');
});

check('output arrives while the command runs', ['exec'], async ({ start, shell }) => {
  const { output, exit } = await start('rm -f go; echo first; while [ ! -e go ]; do sleep 0.05; done; echo second');
  const frames = output[Symbol.asyncIterator]();
  assert.equal((await frames.next()).value?.bytes.toString(), 'first\n');
  await shell('touch go');
  assert.equal((await frames.next()).value?.bytes.toString(), 'second\n');
  assert.equal((await frames.next()).done, true);
  assert.equal((await exit).exitCode, 0);
});

check('megabytes of output arrive complete', ['exec'], async ({ shell }) => {
  const { stdout } = await shell('yes 0123456 | head -c 8000000');
  assert.equal(stdout.length, 8_000_000);
  assert.equal(stdout, '0123456\n'.repeat(1_000_000));
});

check(
  'a command ends with its shell, even if a process it started keeps the output open',
  ['exec'],
  async ({ driver, instance, shell }) => {
    const id = randomUUID();
    const ended = await shell('sleep 1000 & echo started', { id });
    assert.deepEqual(ended, { stdout: 'started\n', stderr: '', exitCode: 0 });
    await driver.signal(instance, id, 'SIGKILL');
  },
);

check('a signal reaches the command', ['exec'], async ({ driver, instance, start }) => {
  const id = randomUUID();
  const command = `trap 'echo caught; exit 4' TERM; echo ready; while :; do sleep 0.05; done`;
  const { output, exit } = await start(command, { id });
  const frames = output[Symbol.asyncIterator]();
  assert.equal((await frames.next()).value?.bytes.toString(), 'ready\n');
  await driver.signal(instance, id, 'SIGTERM');
  // Compares only standard output, because the shell may report its killed child on standard error.
  assert.equal((await collect({ [Symbol.asyncIterator]: () => frames })).stdout, 'caught\n');
  assert.equal((await exit).exitCode, 4);
});

check(
  'SIGKILL ends every process that a command has started, and no other',
  ['exec'],
  async ({ driver, instance, start }) => {
    const [doomed, other] = [randomUUID(), randomUUID()];
    const forks = 'sleep 1001 & (setsid sleep 1002 &) ; (sh -c "sleep 1003 & sleep 1004" &) ; echo ready; sleep 1005';
    const { output, exit } = await start(forks, { id: doomed });
    const survivor = await start('echo ready; sleep 1006', { id: other });
    for (const each of [output, survivor.output]) await each[Symbol.asyncIterator]().next();
    assert.equal((await driver.inspectCommand(instance, doomed)).kind, 'running');
    await driver.signal(instance, doomed, 'SIGKILL');
    assert.equal((await exit).exitCode, 137);
    await eventually('none is left', async () => (await driver.inspectCommand(instance, doomed)).kind !== 'running');
    assert.equal((await driver.inspectCommand(instance, other)).kind, 'running');
    await driver.signal(instance, other, 'SIGKILL');
    assert.equal((await survivor.exit).exitCode, 137);
  },
);

check('a signal to a command that has ended does not fail', ['exec'], async ({ driver, instance, shell }) => {
  const id = randomUUID();
  await shell(':', { id });
  await driver.signal(instance, id, 'SIGTERM');
  await driver.signal(instance, randomUUID(), 'SIGKILL');
  assert.notEqual((await driver.inspectCommand(instance, id)).kind, 'running');
});

check('another process finds the instance and its commands', ['exec'], async ({ instance, subject, start }) => {
  const id = randomUUID();
  const { output, exit } = await start('echo ready; sleep 1007', { id });
  await output[Symbol.asyncIterator]().next();
  const other = await subject.open();
  assert.equal((await other.inspect(instance)).kind, 'found');
  assert.equal((await other.inspectCommand(instance, id)).kind, 'running');
  await other.signal(instance, id, 'SIGKILL');
  assert.equal((await exit).exitCode, 137);
  await other.close();
});

check(
  'a written file is read unchanged, and its missing folders are created',
  ['files'],
  async ({ driver, instance }) => {
    const bytes = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256));
    await driver.files.write(instance, 'made/on the/way/ö\n.bin', bytes);
    const { byteLength, content } = await driver.files.read(instance, '/workspace/made/on the/way/ö\n.bin');
    assert.equal(byteLength, 512);
    assert.deepEqual(await buffer(content), bytes);
    await driver.files.write(instance, 'made/on the/way/ö\n.bin', Buffer.from('shorter'));
    assert.equal(await text((await driver.files.read(instance, 'made/on the/way/ö\n.bin')).content), 'shorter');
  },
);

check('a command reads and changes a written file', ['files', 'exec'], async ({ driver, instance, shell }) => {
  await driver.files.write(instance, 'shared/note', Buffer.from('from outside\n'));
  assert.equal((await shell('cat shared/note; echo inside >> shared/note; echo x > shared/new')).exitCode, 0);
  assert.equal(await text((await driver.files.read(instance, 'shared/note')).content), 'from outside\ninside\n');
});

check('a file of 8 MB and an empty file are read completely', ['files'], async ({ driver, instance }) => {
  const large = Buffer.alloc(8_000_000, 'tollgate');
  await driver.files.write(instance, 'large', large);
  assert(large.equals(await buffer((await driver.files.read(instance, 'large')).content)));
  await driver.files.write(instance, 'empty', Buffer.alloc(0));
  assert.equal((await buffer((await driver.files.read(instance, 'empty')).content)).length, 0);
});

check('a list has names, kinds and sizes, down to its depth', ['files'], async ({ driver, instance }) => {
  for (const path of ['list/a', 'list/b/c', 'list/b/d/e'])
    await driver.files.write(instance, path, Buffer.from('1234'));
  const listed = await driver.files.list(instance, 'list', 2);
  const shown = listed.map(({ path, type, byteLength }) => `${path} ${type} ${type === 'file' ? byteLength : ''}`);
  assert.deepEqual(shown.sort(), ['list/a file 4', 'list/b folder ', 'list/b/c file 4', 'list/b/d folder ']);
  assert(listed.every(({ modifiedAt }) => Math.abs(Date.now() - modifiedAt.getTime()) < 3_600_000));
  const top = (await driver.files.list(instance, '.', 1)).map(({ path }) => path);
  assert(top.includes('list') && !top.some((path) => path.includes('/')));
});

check('a removed file is gone, and a removed folder with its contents', ['files'], async ({ driver, instance }) => {
  await driver.files.write(instance, 'doomed/a/b', Buffer.from('x'));
  await driver.files.remove(instance, 'doomed');
  await failsFor(driver.files.read(instance, 'doomed/a/b'), 'not-found');
  await failsFor(driver.files.remove(instance, 'doomed'), 'not-found');
  await failsFor(driver.files.remove(instance, '.'), 'not-allowed');
});

check('a missing file and a folder instead of a file are different errors', ['files'], async ({ driver, instance }) => {
  await driver.files.write(instance, 'kinds/file', Buffer.from('x'));
  await failsFor(driver.files.read(instance, 'kinds/nothing'), 'not-found');
  await failsFor(driver.files.list(instance, 'kinds/nothing', 1), 'not-found');
  await failsFor(driver.files.read(instance, 'kinds'), 'is-folder');
  await failsFor(driver.files.write(instance, 'kinds', Buffer.from('x')), 'is-folder');
  await failsFor(driver.files.list(instance, 'kinds/file', 1), 'not-folder');
  await failsFor(driver.files.write(instance, 'kinds/file/below', Buffer.from('x')), 'not-folder');
});

check('a file at an absolute path is read, listed and removed there', ['files'], async ({ driver, instance }) => {
  await driver.files.write(instance, '/data/in/m.csv', Buffer.from('a,b'));
  assert.equal(await text((await driver.files.read(instance, '/data/in/m.csv')).content), 'a,b');
  const listed = await driver.files.list(instance, '/data', 2);
  assert.deepEqual(listed.map(({ path }) => path).sort(), ['/data/in', '/data/in/m.csv']);
  const inRoot = await driver.files.list(instance, '/', 1);
  assert(inRoot.some(({ path, type }) => path === '/data' && type === 'folder'));
  await driver.files.remove(instance, '/data/in');
  await failsFor(driver.files.read(instance, '/data/in/m.csv'), 'not-found');
});

check('a relative path and one below the work folder name the same file', ['files'], async ({ driver, instance }) => {
  await driver.files.write(instance, '/workspace/same/file', Buffer.from('one'));
  assert.equal(await text((await driver.files.read(instance, 'same/file')).content), 'one');
  const listed = await driver.files.list(instance, '/workspace/same', 1);
  assert.deepEqual(
    listed.map(({ path }) => path),
    ['same/file'],
  );
});

check(
  'commands and the files API see the same file at an absolute path',
  ['files'],
  async ({ driver, instance, shell }) => {
    if (!driver.capabilities.exec || driver.capabilities.isolation === 'none') return;
    for (const folder of ['/data/shared', '/home', '/tmp/shared', '/workspace/shared']) {
      await driver.files.write(instance, `${folder}/in`, Buffer.from(folder));
      const copied = await shell(`cat in; cp ${folder}/in ${folder}/out; echo by command > ${folder}/in`, {
        cwd: folder,
      });
      assert.deepEqual(copied, { stdout: folder, stderr: '', exitCode: 0 });
      assert.equal(await text((await driver.files.read(instance, `${folder}/out`)).content), folder);
      assert.equal(await text((await driver.files.read(instance, `${folder}/in`)).content), 'by command\n');
    }
  },
);

check(
  'folders of the system are read-only, and folders that every instance has cannot be removed',
  ['files'],
  async ({ driver, instance }) => {
    for (const path of ['/etc/passwd', '/usr/bin/new', '/bin/sh', '/lib/x/y']) {
      await failsFor(driver.files.write(instance, path, Buffer.from('x')), 'not-allowed');
      await failsFor(driver.files.remove(instance, path), 'not-allowed');
    }
    for (const path of ['/', '/workspace', '/tmp', '/etc', '/usr', '.'])
      await failsFor(driver.files.remove(instance, path), 'not-allowed');
  },
);

check(
  "no path leads out of the instance's root, nor to what the kernel shows",
  ['files'],
  async ({ driver, instance }) => {
    for (const path of [...refused, ...kernel, 'a'.repeat(300), 'b/'.repeat(3_000)]) {
      await failsFor(driver.files.read(instance, path), 'path-invalid');
      await failsFor(driver.files.write(instance, path, Buffer.from('x')), 'path-invalid');
      await failsFor(driver.files.list(instance, path, 1), 'path-invalid');
      await failsFor(driver.files.remove(instance, path), 'path-invalid');
    }
  },
);

check(
  "a file of the gateway's machine is at no path, by no link and at no working folder of an instance",
  ['files'],
  async ({ driver, instance, start, shell }) => {
    const host = await mkdtemp(join(tmpdir(), 'tollgate-outside-'));
    try {
      const secret = join(host, 'secret');
      await writeFile(secret, 'of the machine');
      await failsFor(driver.files.read(instance, secret), 'not-found');
      await failsFor(driver.files.list(instance, host, 1), 'not-found');
      await failsFor(driver.files.remove(instance, secret), 'not-found');
      if (!driver.capabilities.exec) return;
      await failsFor(start('pwd', { cwd: host }), 'not-folder');
      const up = '../'.repeat(30);
      const links = `ln -s ${secret} whole; ln -s ${up}${secret} up; ln -s ${host} folder; ln -s / top`;
      assert.equal((await shell(`mkdir outside && cd outside && ${links}`)).exitCode, 0);
      const paths = ['outside/whole', 'outside/up', 'outside/folder/secret', `outside/top${secret}`];
      for (const path of paths) await failsFor(driver.files.read(instance, path), 'not-found');
      // The write succeeds, because a driver may follow the link and create the file inside the instance. The file of the host must stay unchanged.
      for (const path of paths) await driver.files.write(instance, path, Buffer.from('of the instance'));
      assert.equal(await readFile(secret, 'utf8'), 'of the machine');
      assert.equal(await text((await driver.files.read(instance, secret)).content), 'of the instance');
      await driver.files.remove(instance, 'outside/folder/secret');
      assert.equal(await readFile(secret, 'utf8'), 'of the machine');
    } finally {
      await rm(host, { recursive: true, force: true });
    }
  },
);

check(
  'a link to a file of the kernel or to itself is refused, and a link to a file of the instance is followed',
  ['files', 'exec'],
  async ({ driver, instance, shell }) => {
    await driver.files.write(instance, 'links/inside/file', Buffer.from('inside'));
    const made = await shell(
      'cd links && ln -s /proc/self/environ out && ln -s / top && ln -s ../../.. up && ln -s inside in && ln -s loop loop',
    );
    assert.equal(made.exitCode, 0);
    for (const path of ['links/out', 'links/top/proc/version', 'links/up/proc/version', 'links/top/dev/null']) {
      await failsFor(driver.files.read(instance, path), 'path-invalid');
      await failsFor(driver.files.write(instance, path, Buffer.from('x')), 'path-invalid');
    }
    await failsFor(driver.files.remove(instance, 'links/top/tmp'), 'not-allowed');
    await failsFor(driver.files.remove(instance, 'links/top/etc/passwd'), 'not-allowed');
    await failsFor(driver.files.read(instance, 'links/loop'), 'path-invalid');
    assert.equal(await text((await driver.files.read(instance, 'links/in/file')).content), 'inside');
    await driver.files.write(instance, 'links/in/new', Buffer.from('by the link'));
    assert.equal(await text((await driver.files.read(instance, 'links/inside/new')).content), 'by the link');
    await driver.files.remove(instance, 'links/top');
    await driver.files.remove(instance, 'links/in');
    assert.equal(await text((await driver.files.read(instance, 'links/inside/file')).content), 'inside');
  },
);

const PORT = 18_733;

check(
  'a server inside is reached at the address of its port',
  ['ports', 'exec', 'files'],
  async ({ driver, instance, subject, start }) => {
    await driver.files.write(instance, 'site/index.html', Buffer.from('hello from inside'));
    const id = randomUUID();
    const server = await start(subject.webServer(PORT), { id, cwd: 'site' });
    await eventually('the page is there', async () => {
      const address = await driver.dialPort(instance, PORT).catch(() => undefined);
      return address !== undefined && (await fetchText(address).catch(() => '')) === 'hello from inside';
    });
    await driver.signal(instance, id, 'SIGKILL');
    await server.exit;
  },
);

check('an instance without ports has none to dial, and no network', ['ports'], async ({ driver, subject, options }) => {
  const name = `tg-${randomUUID()}-1`;
  const closed = await driver.create({ ...subject.spec, ports: false }, options(name));
  try {
    await fails(driver.dialPort(closed, PORT), NotSupported);
  } finally {
    await driver.terminate(closed);
  }
});

check('a suspended instance stops, and continues where it was', ['suspend'], async ({ driver, instance, start }) => {
  const id = randomUUID();
  const keepsMemory = driver.capabilities.suspend === 'memory' && driver.capabilities.exec;
  const counting = 'n=0; while :; do n=$((n + 1)); echo $n; sleep 0.02; done';
  const counter = keepsMemory ? await start(counting, { id }) : undefined;
  const before = await driver.inspect(instance);
  await driver.suspend(instance);
  await driver.suspend(instance);
  const suspended = await driver.inspect(instance);
  assert.equal(suspended.kind === 'found' && suspended.state, 'suspended');
  if (driver.capabilities.exec) await fails(start('echo no'), NotRunning);
  await driver.resume(instance);
  await driver.resume(instance);
  const after = await driver.inspect(instance);
  assert(before.kind === 'found' && after.kind === 'found');
  assert.equal(after.state, 'running');
  if (counter === undefined) return;
  assert.equal(after.incarnation, before.incarnation);
  await mustContinue(counter.output);
  await driver.signal(instance, id, 'SIGKILL');
  assert.equal((await counter.exit).exitCode, 137);
});

check(
  'an ended instance is gone with its commands, and ending it again does not fail',
  [],
  async ({ driver, instance, listed, start }) => {
    const running = driver.capabilities.exec ? await start('echo ready; sleep 1008') : undefined;
    await running?.output[Symbol.asyncIterator]().next();
    await driver.terminate(instance);
    await driver.terminate(instance);
    await eventually('it is gone', async () => (await driver.inspect(instance)).kind === 'gone');
    await running?.exit.catch((error: unknown) => assert(error instanceof InstanceGone, String(error)));
    assert.deepEqual(await listed(), []);
    const { exec, files, ports, suspend } = driver.capabilities;
    if (exec) await fails(start('echo no'), InstanceGone);
    if (files) await fails(driver.files.read(instance, 'large'), InstanceGone);
    if (ports) await fails(driver.dialPort(instance, PORT), InstanceGone);
    if (suspend !== 'none') await fails(driver.suspend(instance), InstanceGone);
  },
);

check('a suspended instance can be ended', ['suspend'], async ({ driver, subject, options }) => {
  const name = `tg-${randomUUID()}-2`;
  const instance = await driver.create(subject.spec, options(name));
  await driver.suspend(instance);
  await driver.terminate(instance);
  await eventually('it is gone', async () => (await driver.inspect(instance)).kind === 'gone');
  await driver.close();
});

async function fetchText({ host, port, connect }: PortAddress): Promise<string> {
  const socket = await connect?.();
  return new Promise((resolve, reject) => {
    const connection = socket === undefined ? { agent: false } : { createConnection: () => socket };
    const call = request({ host, port, ...connection }, (response) => text(response).then(resolve, reject));
    call.once('error', reject);
    call.end();
  });
}

/** Waits until the command has printed 50 numbers, and asserts that they are 1 to 50 in ascending order. */
async function mustContinue(output: AsyncIterable<OutputFrame>): Promise<void> {
  const frames = output[Symbol.asyncIterator]();
  let printed = '';
  while (printed.split('\n').length <= 50) {
    const { value } = await frames.next();
    assert(value !== undefined, `it ended after ${printed}`);
    printed += value.bytes.toString();
  }
  const numbers = printed.trim().split('\n').slice(0, 50);
  assert.deepEqual(
    numbers,
    numbers.map((_, index) => String(index + 1)),
  );
}
