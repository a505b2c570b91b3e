import { execFile, spawn } from 'node:child_process';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { endianness, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePort } from '../support/free-port';
import { unprivilegedUser } from '../support/postgres';
import { findProgram } from '../support/programs';
import { until } from '../support/until';

const run = promisify(execFile);

/** A store that the test kills, suspends and starts again on the same port and folder. */
export interface Server {
  readonly url: string;
  /** Starts the store, and waits until it accepts connections. */
  start(): Promise<void>;
  /** Sends SIGKILL to all processes of the store, so that it writes nothing at its end. */
  kill(): Promise<void>;
  /** Sends SIGSTOP, and SIGCONT after that time. */
  stall(milliseconds: number): Promise<void>;
  /** Stops the store for good and removes its folder. */
  remove(): Promise<void>;
}

interface Command {
  readonly program: string;
  readonly args: readonly string[];
  readonly folder: string;
  readonly ready: string;
  readonly owner: { readonly uid?: number; readonly gid?: number };
  readonly env?: NodeJS.ProcessEnv;
}

function isGroupThere(group: number | undefined): boolean {
  if (group === undefined) return false;
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}

function supervise(url: string, command: Command): Server {
  let group: number | undefined;
  let ended: Promise<unknown> = Promise.resolve();
  const signal = (name: NodeJS.Signals) => {
    if (group !== undefined) process.kill(-group, name);
  };
  const kill = async () => {
    if (isGroupThere(group)) signal('SIGKILL');
    await ended;
    group = undefined;
  };
  const launch = async () => {
    const { program, args, folder, ready, owner, env } = command;
    // Uses a process group, because Postgres has many processes, and a crash ends them all.
    const child = spawn(program, args, {
      cwd: folder,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      ...owner,
      env: { ...process.env, ...env },
    });
    group = child.pid;
    ended = new Promise((done) => child.once('exit', done));
    let output = '';
    const isReady = (chunk: Buffer) => {
      output = (output + chunk.toString()).slice(-20_000);
    };
    child.stdout.on('data', isReady);
    child.stderr.on('data', isReady);
    await until(
      `${program} takes connections`,
      () => {
        if (child.exitCode !== null) return true;
        return output.includes(ready);
      },
      60_000,
    );
    if (!output.includes(ready)) throw new Error(`${program} ended`, { cause: output });
    output = '';
  };
  return {
    url,
    start: async () => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await launch();
        } catch (error) {
          // The other processes of a killed Postgres have their own groups, and keep its shared memory slightly longer.
          const isHeld = String((error as Error).cause).includes('pre-existing shared memory');
          if (!isHeld || attempt === 10) throw error;
        }
      }
    },
    kill,
    stall: async (milliseconds) => {
      signal('SIGSTOP');
      await new Promise((wake) => setTimeout(wake, milliseconds));
      signal('SIGCONT');
    },
    remove: async () => {
      if (group !== undefined) await kill();
      await rm(command.folder, { recursive: true, force: true });
    },
  };
}

export interface ClockedServer extends Server {
  /** Sets the clock's distance from the true time; undefined if the clock cannot be moved. */
  readonly setClock: ((seconds: number) => Promise<void>) | undefined;
}

/** Makes a Redis with an append-only file, and with a movable clock if there is a C compiler. */
export async function redisServer(appendfsync: 'everysec' | 'always'): Promise<ClockedServer> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-chaos-redis-'));
  const port = await freePort();
  const clock = await makeClock(folder);
  const server = supervise(`redis://127.0.0.1:${port}`, {
    program: findProgram('redis-server'),
    args: [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'yes'],
      ...['--appendfsync', appendfsync],
    ],
    folder,
    ready: 'Ready to accept connections',
    owner: {},
    env: clock?.env ?? {},
  });
  return { ...server, setClock: clock?.set };
}

/** Builds the library that adds an offset in a file to the time; undefined without a compiler. */
export async function makeClock(folder: string) {
  const [library, file] = [join(folder, 'clock.so'), join(folder, 'clock-offset')];
  try {
    await run('cc', ['-O2', '-shared', '-fPIC', '-o', library, join(__dirname, 'clock.c')]);
  } catch {
    return undefined;
  }
  const offset = Buffer.alloc(8);
  await writeFile(file, offset);
  const set = async (seconds: number) => {
    if (endianness() === 'LE') offset.writeBigInt64LE(BigInt(seconds));
    else offset.writeBigInt64BE(BigInt(seconds));
    // Writes into the existing file, because the library has mapped it.
    await writeFile(file, offset, { flag: 'r+' });
  };
  return { env: { LD_PRELOAD: library, CLOCK_OFFSET_FILE: file }, set };
}

/** Makes a Postgres that survives SIGKILL: it writes its files through to the system, though not to the disk. */
export async function postgresServer(): Promise<Server> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-chaos-postgres-'));
  const owner: { uid?: number; gid?: number } = (await unprivilegedUser()) ?? {};
  if (owner.uid !== undefined && owner.gid !== undefined) await chown(folder, owner.uid, owner.gid);
  const data = join(folder, 'data');
  const init = ['-D', data, '-U', 'tollgate', '--auth=trust', '--no-sync', '-E', 'UTF8', '--locale=C'];
  await run(findProgram('initdb'), init, { cwd: folder, ...owner });
  const port = await freePort();
  const settings = [
    ...['listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`, 'fsync=off'],
    ...['max_connections=100', 'log_checkpoints=off'],
  ];
  return supervise(`postgres://tollgate@127.0.0.1:${port}/postgres`, {
    program: findProgram('postgres'),
    args: ['-D', data, '-p', String(port), ...settings.flatMap((each) => ['-c', each])],
    folder,
    ready: 'ready to accept connections',
    owner,
  });
}
