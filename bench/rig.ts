/** Starts the services of a measurement and stops them at the end, on failure and on Ctrl-C. The rig stops the last service first. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, openSync, readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { startPostgres, type TestPostgres } from '../test/support/postgres';
import { startRedis, type TestRedis } from '../test/support/redis';
import { until } from '../test/support/until';

export const PROJECT_FOLDER = join(__dirname, '..');
/** The folder that caches downloads between runs. The files are neither committed nor dependencies. */
export const CACHE_FOLDER = join(__dirname, '.cache');
const PROGRAMS_FOLDER = join(__dirname, 'subjects', 'programs');

const execute = promisify(execFile);

/** The error for a subject that cannot run on this machine. The subject's row shows the reason. */
export class NotAvailable extends Error {
  override readonly name = 'NotAvailable';
}

export interface RigOptions {
  /** The Node binary for every Node subject and program. */
  readonly node: string;
  /** Whether to build the project before the measurement. */
  readonly build: boolean;
  /** The folder of another built checkout of Tollgate, which the bench measures as `tollgate-before`; undefined for none. */
  readonly before: string | undefined;
  /** The folder for CPU profiles of all Node programs; undefined for none. */
  readonly profileFolder: string | undefined;
  progress(line: string): void;
}

export interface Program {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Waits for the program's next message that has the member `key`, and returns that member. */
  message<T>(key: string, withinMs?: number): Promise<T>;
  stop(): Promise<void>;
}

export interface ProgramOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly args?: readonly string[];
  readonly nodeArgs?: readonly string[];
  readonly cwd?: string;
}

export class Rig {
  readonly #stops: (() => Promise<void>)[] = [];
  readonly #abort = new AbortController();
  readonly #root: Rig;
  #stopped: Promise<void> | undefined;
  #postgres: Promise<TestPostgres> | undefined;
  #built: Promise<void> | undefined;
  #files = 0;

  private constructor(
    readonly options: RigOptions,
    readonly folder: string,
    root?: Rig,
  ) {
    this.#root = root ?? this;
  }

  static async open(options: RigOptions): Promise<Rig> {
    const folder = await mkdtemp(join(tmpdir(), 'tollgate-bench-'));
    const rig = new Rig(options, folder);
    rig.onStop(() => rm(folder, { recursive: true, force: true }));
    return rig;
  }

  /** Returns a group of services that can be stopped before the other services of this rig. */
  scope(): Rig {
    const scope = new Rig(this.options, this.folder, this.#root);
    this.onStop(() => scope.stop());
    return scope;
  }

  /** Aborts when the rig stops, so that short-lived programs end, for example a round of wrk. */
  get signal(): AbortSignal {
    return this.#root.#abort.signal;
  }

  onStop(stop: () => Promise<void>): void {
    this.#stops.push(stop);
  }

  /** Stops all services. Runs once, even if both a signal and the end of the run request it. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#stopped;
  }

  async #stopAll(): Promise<void> {
    this.#abort.abort();
    for (let stop = this.#stops.pop(); stop !== undefined; stop = this.#stops.pop()) {
      await stop().catch((error: unknown) => this.options.progress(`could not stop: ${String(error)}`));
    }
  }

  async keep<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
    const service = await starting;
    if (this.#stopped !== undefined) {
      await service.stop();
      throw new Error('the bench is stopping its services and starts no more');
    }
    this.onStop(() => service.stop());
    return service;
  }

  /** Returns an unused path in the rig's temporary folder. The path ends with the name. */
  path(name: string): string {
    this.#root.#files += 1;
    return join(this.folder, `${this.#root.#files}-${name}`);
  }

  async newFolder(name: string): Promise<string> {
    const folder = this.path(name);
    await mkdir(folder);
    return folder;
  }

  /**
   * Starts a Redis with the documented durability: an append-only file, synced every second. Redis never rewrites the file, because a
   * rewrite would affect only one round.
   */
  redis(more: readonly string[] = []): Promise<TestRedis> {
    return this.keep(
      startRedis(['--appendonly', 'yes', '--appendfsync', 'everysec', '--auto-aof-rewrite-percentage', '0', ...more]),
    );
  }

  /** Returns the Postgres that the whole run shares, and starts it on the first call. */
  postgres(): Promise<TestPostgres> {
    this.#root.#postgres ??= this.#root.keep(startPostgres());
    return this.#root.#postgres;
  }

  /** Returns the folder of the compiled project, as in production: `<project>/dist`. */
  async dist(): Promise<string> {
    const folder = join(PROJECT_FOLDER, 'dist');
    if (this.options.build) {
      this.#root.#built ??= buildProject(this.options, this.signal);
      await this.#root.#built;
    }
    if (!existsSync(folder)) throw new NotAvailable('there is no dist folder: run npm run build');
    return folder;
  }

  /** Starts one of the bench's stand-alone programs with the Node binary of the options. */
  program(name: string, options: ProgramOptions = {}): Promise<Program> {
    return this.node(name, join(PROGRAMS_FOLDER, name), options);
  }

  node(name: string, script: string, options: ProgramOptions = {}): Promise<Program> {
    const { profileFolder } = this.options;
    const profile =
      profileFolder === undefined
        ? []
        : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`, `--cpu-prof-name=${basename(this.path(name))}.cpuprofile`];
    const args = [...profile, ...(options.nodeArgs ?? []), script, ...(options.args ?? [])];
    return this.spawn(name, this.options.node, args, options);
  }

  spawn(name: string, file: string, args: readonly string[], options: ProgramOptions = {}): Promise<Program> {
    const log = this.path(`${name}.log`);
    const output = openSync(log, 'a');
    const child = spawn(file, args, {
      cwd: options.cwd ?? this.folder,
      env: { ...environment(), ...options.env },
      stdio: ['ignore', output, output, 'ipc'],
    });
    return this.keep(Promise.resolve(program(name, child, log)));
  }
}

/** The path of the script that measures the event loop when Node preloads it; see `programs/loop-probe.cjs`. */
export const LOOP_PROBE = join(PROGRAMS_FOLDER, 'loop-probe.cjs');

/** Returns the environment variables of started programs. They must not depend on the caller's shell. */
function environment(): NodeJS.ProcessEnv {
  const { PATH, HOME, LANG, TMPDIR } = process.env;
  return { PATH, HOME, LANG, TMPDIR, NODE_ENV: 'production' };
}

async function buildProject({ progress }: RigOptions, signal: AbortSignal): Promise<void> {
  progress('building the project');
  try {
    await execute('npm', ['run', 'build'], { cwd: PROJECT_FOLDER, maxBuffer: 1 << 26, signal });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new NotAvailable(`npm run build failed: ${lastLines(stdout + stderr)}`);
  }
}

function program(name: string, child: ChildProcess, log: string): Program {
  let failure: Error | undefined;
  child.once('error', (error) => {
    failure = error;
  });
  const messages: Record<string, unknown>[] = [];
  child.on('message', (message: Record<string, unknown>) => messages.push(message));
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const take = (key: string): unknown => {
    const at = messages.findIndex((message) => key in message);
    return at === -1 ? undefined : messages.splice(at, 1)[0]?.[key];
  };
  return {
    pid: child.pid ?? 0,
    child,
    async message<T>(key: string, withinMs = 20_000) {
      const value = await until(
        `${name} says ${key}`,
        () => {
          const found = take(key);
          return found ?? (hasEnded() || failure !== undefined ? 'ended' : undefined);
        },
        withinMs,
      );
      if (value === 'ended')
        throw new Error(`the program ${name} exited: ${failure?.message ?? lastLines(readFileSync(log, 'utf8'))}`);
      return value as T;
    },
    stop: () => stopChild(child),
  };
}

/** Sends SIGTERM and then SIGKILL, because a slow shutdown must not delay the next subject. */
async function stopChild(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once('exit', done));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await ended;
  clearTimeout(timer);
}

function lastLines(text: string): string {
  return text.trim().split('\n').slice(-3).join(' | ').slice(-400);
}

/** Runs the work with a new rig, and stops all of the rig's services afterwards, even if the work throws. */
export async function withRig<T>(options: RigOptions, work: (rig: Rig) => Promise<T>): Promise<T> {
  const rig = await Rig.open(options);
  const interrupt = (signal: NodeJS.Signals) => {
    options.progress(`${signal}: stopping everything`);
    void rig.stop().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143));
  };
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  try {
    return await work(rig);
  } finally {
    await rig.stop();
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
