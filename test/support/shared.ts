import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { Redis } from 'ioredis';
import { migrate, openPostgres } from '../../core/storage/database';
import { buildServer } from './built-server';
import { startPostgresOfCompose, startRedisOfCompose } from './compose';
import { adoptDataFolder, prepareDataFolder, removeDataFolders } from './data-folder';
import { quiet } from './databases';
import { type DockerEngine, reachDocker, startDocker, type TestDocker } from './docker';
import { startPostgres, type TestPostgres } from './postgres';
import { startRedis, type TestRedis } from './redis';
import { until } from './until';

/**
 * Shares services among all test files. The first test that needs one starts it, and the end of the run stops it. Test files run in several
 * processes, which ask the main one at the address in the environment. A test that kills or stalls a store starts its own.
 */
const ADDRESS = 'TESTS_SHARE_AT';

/** The number of the process. Simultaneous files do not see each other's Redis or containers. */
const WORKER = process.env['MOCHA_WORKER_ID'] ?? '0';

sendBigInts();

/**
 * Converts bigints in messages to mocha's main process. Mocha sends results as JSON, and one bigint in a failed assertion would lose all results
 * of the file.
 */
function sendBigInts(): void {
  const { send } = process;
  if (send === undefined) return;
  process.send = ((message: unknown) => Reflect.apply(send, process, [withoutBigInts(message)])) as typeof send;
}

function withoutBigInts(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)));
}

/** The Redis servers of this process, and the number of its gateways on each. */
const redisesHere: { url?: string; gateways: number }[] = [];

/**
 * Returns the address of an emptied Redis that no running gateway of this process uses. Files of one process run one after the other, so that it is
 * usually the same Redis. @param gateways the number of gateways that will start on it
 */
export async function emptyRedis(gateways = 0): Promise<string> {
  let index = redisesHere.findIndex((redis) => redis.gateways === 0);
  if (index === -1) index = redisesHere.push({ gateways: 0 }) - 1;
  const redis = redisesHere[index] as (typeof redisesHere)[number];
  redis.gateways += gateways;
  const url = await ask<string>(`redis/${WORKER}-${index}`);
  redis.url = url;
  const client = new Redis(url);
  await client.flushall();
  client.disconnect();
  return url;
}

/** Counts a gateway that starts (1) or ends (-1) on a Redis. It ignores those that {@link emptyRedis} did not return. */
export function countGateway(redisUrl: string, change: 1 | -1): void {
  const redis = redisesHere.find(({ url }) => url === redisUrl);
  if (redis !== undefined) redis.gateways += change;
}

/** Makes an empty, migrated database on the shared Postgres. */
export function newDatabase(): Promise<string> {
  return ask('database');
}

/** Makes a database without migrations. */
export function bareDatabase(): Promise<string> {
  return ask('bare-database');
}

/** Returns the Docker engine of this process. A test that starts containers must end them. */
export async function sharedDocker(): Promise<DockerEngine> {
  return reachDocker(await ask(`docker/${WORKER}`));
}

/** Returns a data folder with an empty, migrated embedded database, for copying. */
export function emptyDataFolder(): Promise<string> {
  return ask('data-folder');
}

/** Returns the server as operators start it, built from the current sources. */
export function builtServer(): Promise<string> {
  return ask('server');
}

/** Ends a process with the run, and removes its data folder, because the processes of mocha are ended without notice. */
export function endsWithRun(pid: number, dataFolder: string): Promise<void> {
  return ask(`ends-with-run/${encodeURIComponent(`${pid} ${dataFolder}`)}`);
}

async function ask<T>(what: string): Promise<T> {
  // Chaos and benches run without mocha.
  if (process.env[ADDRESS] === undefined) await mochaGlobalSetup();
  const answer = await fetch(`${process.env[ADDRESS]}/${what}`);
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as T;
}

const startStores =
  process.env['STORES'] === 'compose'
    ? { redis: startRedisOfCompose, postgres: startPostgresOfCompose }
    : { redis: startRedis, postgres: startPostgres };

const redises = new Map<string, Promise<TestRedis>>();
const engines = new Map<string, Promise<TestDocker>>();
let postgres: Promise<TestPostgres> | undefined;
/** The migrated template, because copying it takes a tenth of the time of the migrations. */
let migrated: Promise<string> | undefined;
let dataFolder: Promise<string> | undefined;
let program: Promise<string> | undefined;
let server: Server | undefined;
/** Processes that test files have left for each other, with their data folders. */
const left = new Map<number, string>();

/** Starts the sharing server. Mocha calls it once, in the main process. */
export async function mochaGlobalSetup(): Promise<void> {
  server = createServer(async ({ url = '' }, response) => {
    const [status, answer] = await share(url.slice(1)).then(
      (given) => [200, JSON.stringify(given)] as const,
      (error: unknown) => [500, String(error)] as const,
    );
    // Closes each connection, because a kept one could be closed just when a test file sends its next request.
    response.writeHead(status, { connection: 'close' }).end(answer);
  });
  await new Promise<void>((done) => server?.listen(0, '127.0.0.1', done).unref());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  process.env[ADDRESS] = `http://127.0.0.1:${address.port}`;
}

/** Starts a service and returns its address. */
async function share(what: string): Promise<unknown> {
  const [kind, worker = ''] = what.split('/');
  switch (kind) {
    case 'redis':
      return (await once(redises, worker, startStores.redis)).url;
    case 'docker': {
      const { socket, pid } = await once(engines, worker, startDocker);
      return { socket, pid };
    }
    case 'database':
      postgres ??= startStores.postgres();
      migrated ??= postgres.then(migratedDatabase);
      return (await postgres).createDatabase(await migrated);
    case 'bare-database':
      postgres ??= startStores.postgres();
      return (await postgres).createDatabase();
    case 'data-folder':
      dataFolder ??= prepareDataFolder();
      return dataFolder;
    case 'ends-with-run': {
      const [pid = '', folder = ''] = decodeURIComponent(worker).split(' ');
      left.set(Number(pid), folder);
      return null;
    }
    case 'server':
      program ??= buildServer();
      return program;
    default:
      throw new Error(`nobody shares ${what}`);
  }
}

/** Makes a migrated database and returns its URL. */
async function migratedDatabase({ createDatabase }: TestPostgres): Promise<string> {
  const databaseUrl = await createDatabase();
  const database = openPostgres(databaseUrl, { log: quiet });
  await migrate(database);
  await database.destroy();
  return databaseUrl;
}

/** Returns whether a process runs. One that has ended may wait for ever for a parent that is gone. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

function once<T>(started: Map<string, Promise<T>>, worker: string, start: () => Promise<T>): Promise<T> {
  const running = started.get(worker) ?? start();
  started.set(worker, running);
  return running;
}

export async function mochaGlobalTeardown(): Promise<void> {
  server?.close();
  for (const pid of left.keys()) if (isAlive(pid)) process.kill(pid);
  for (const [pid, folder] of left) {
    await until(`process ${pid} has ended`, () => !isAlive(pid));
    adoptDataFolder(folder);
  }
  const running: Promise<{ stop(): Promise<void> }>[] = [...redises.values(), ...engines.values()];
  if (postgres !== undefined) running.push(postgres);
  // A service that cannot be stopped must not keep the others running.
  const stops = await Promise.allSettled(running.map(async (each) => (await each.catch(() => undefined))?.stop()));
  await removeDataFolders();
  for (const stop of stops) if (stop.status === 'rejected') throw stop.reason;
}

/** The factor on time limits, which must end hanging tests but not slow ones on a busy machine. */
const PATIENCE = 2;

export const mochaHooks = {
  beforeAll(this: Mocha.Context) {
    for (const each of runnablesOf(this.test?.parent)) each.timeout(PATIENCE * each.timeout());
  },
  afterAll: removeDataFolders,
};

/** Lists the tests and hooks of a suite and its inner suites that have not begun. */
function runnablesOf(suite: Mocha.Suite | undefined): Mocha.Runnable[] {
  if (suite === undefined) return [];
  const { _beforeAll, _beforeEach, _afterEach, _afterAll } = suite as unknown as Record<string, Mocha.Runnable[]>;
  const own = [_beforeAll, _beforeEach, _afterEach, _afterAll].flatMap((hooks) => hooks ?? []);
  return [...own, ...suite.tests, ...suite.suites.flatMap(runnablesOf)];
}
