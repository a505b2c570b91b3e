import { createServer, type Server } from 'node:http';
import { Redis } from 'ioredis';
import { migrate, openPostgres } from '../../core/storage/database';
import { buildServer } from './built-server';
import { prepareDataFolder, removeDataFolders } from './data-folder';
import { quiet } from './databases';
import { type DockerEngine, reachDocker, startDocker, type TestDocker } from './docker';
import { startPostgres, type TestPostgres } from './postgres';
import { startRedis, type TestRedis } from './redis';

/**
 * What all test files share, each thing started when the first test asks for it and stopped when the run has ended. Test files
 * run in several processes: those ask the one that started them, at the address it leaves in the environment. A test that kills or
 * stalls a store starts its own.
 */
const ADDRESS = 'TESTS_SHARE_AT';

/** Two files that run at the same time do not see each other's Redis or containers. */
const WORKER = process.env['MOCHA_WORKER_ID'] ?? '0';

sendBigInts();

/**
 * What a test file came to goes to mocha's main process as JSON: one amount in what a failed assertion compares would lose all of
 * the file's results.
 */
function sendBigInts(): void {
  const { send } = process;
  if (send === undefined) return;
  process.send = ((message: unknown) => Reflect.apply(send, process, [withoutBigInts(message)])) as typeof send;
}

function withoutBigInts(message: unknown): unknown {
  return JSON.parse(JSON.stringify(message, (_, value) => (typeof value === 'bigint' ? `${value}n` : value)));
}

/** The Redises of this process, and how many of its gateways run on each. */
const redisesHere: { url?: string; gateways: number }[] = [];

/**
 * The address of a Redis that no running gateway of this process uses, emptied. This process runs its test files one after the
 * other, so it is mostly the same Redis.
 *
 * @param gateways how many gateways are about to run on it
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

/** Counts a gateway that begins (1) or ends (-1) on a Redis. Those that {@link emptyRedis} did not give are nobody's to empty. */
export function countGateway(redisUrl: string, change: 1 | -1): void {
  const redis = redisesHere.find(({ url }) => url === redisUrl);
  if (redis !== undefined) redis.gateways += change;
}

/** A new database of this version on the shared Postgres, with nothing in it. */
export function newDatabase(): Promise<string> {
  return ask('database');
}

/** One that nobody has migrated. */
export function bareDatabase(): Promise<string> {
  return ask('bare-database');
}

/** The Docker engine of this process. Who starts containers ends them. */
export async function sharedDocker(): Promise<DockerEngine> {
  return reachDocker(await ask(`docker/${WORKER}`));
}

/** A data folder with an embedded database of this version that has nothing in it; to be copied. */
export function emptyDataFolder(): Promise<string> {
  return ask('data-folder');
}

/** The program that operators start, built from the sources as they are. */
export function builtServer(): Promise<string> {
  return ask('server');
}

async function ask<T>(what: string): Promise<T> {
  // Chaos and benches run without mocha.
  if (process.env[ADDRESS] === undefined) await mochaGlobalSetup();
  const answer = await fetch(`${process.env[ADDRESS]}/${what}`);
  if (!answer.ok) throw new Error(await answer.text());
  return (await answer.json()) as T;
}

const redises = new Map<string, Promise<TestRedis>>();
const engines = new Map<string, Promise<TestDocker>>();
let postgres: Promise<TestPostgres> | undefined;
/** Copied for each that is asked for: a copy takes a tenth of what the migrations take. */
let migrated: Promise<string> | undefined;
let dataFolder: Promise<string> | undefined;
let program: Promise<string> | undefined;
let server: Server | undefined;

/** By mocha, once, in the process that was started. */
export async function mochaGlobalSetup(): Promise<void> {
  server = createServer(async ({ url = '' }, response) => {
    const [status, answer] = await share(url.slice(1)).then(
      (given) => [200, JSON.stringify(given)] as const,
      (error: unknown) => [500, String(error)] as const,
    );
    // A connection that is kept would be closed after some seconds, perhaps just while a test file sends its next question.
    response.writeHead(status, { connection: 'close' }).end(answer);
  });
  await new Promise<void>((done) => server?.listen(0, '127.0.0.1', done).unref());
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port was given');
  process.env[ADDRESS] = `http://127.0.0.1:${address.port}`;
}

/** What only names where it is. */
async function share(what: string): Promise<unknown> {
  const [kind, worker = ''] = what.split('/');
  switch (kind) {
    case 'redis':
      return (await once(redises, worker, startRedis)).url;
    case 'docker': {
      const { socket, pid } = await once(engines, worker, startDocker);
      return { socket, pid };
    }
    case 'database':
      postgres ??= startPostgres();
      migrated ??= postgres.then(migratedDatabase);
      return (await postgres).createDatabase(await migrated);
    case 'bare-database':
      postgres ??= startPostgres();
      return (await postgres).createDatabase();
    case 'data-folder':
      dataFolder ??= prepareDataFolder();
      return dataFolder;
    case 'server':
      program ??= buildServer();
      return program;
    default:
      throw new Error(`nobody shares ${what}`);
  }
}

/** Its URL. */
async function migratedDatabase({ createDatabase }: TestPostgres): Promise<string> {
  const databaseUrl = await createDatabase();
  const database = openPostgres(databaseUrl, { log: quiet });
  await migrate(database);
  await database.destroy();
  return databaseUrl;
}

function once<T>(started: Map<string, Promise<T>>, worker: string, start: () => Promise<T>): Promise<T> {
  const running = started.get(worker) ?? start();
  started.set(worker, running);
  return running;
}

export async function mochaGlobalTeardown(): Promise<void> {
  server?.close();
  const running: Promise<{ stop(): Promise<void> }>[] = [...redises.values(), ...engines.values()];
  if (postgres !== undefined) running.push(postgres);
  // What cannot be stopped must not keep the others running.
  const stops = await Promise.allSettled(running.map(async (each) => (await each.catch(() => undefined))?.stop()));
  await removeDataFolders();
  for (const stop of stops) if (stop.status === 'rejected') throw stop.reason;
}

/** A limit is there to end what hangs. On a machine that is busy with other things it must not end what is slow. */
const PATIENCE = 2;

export const mochaHooks = {
  beforeAll(this: Mocha.Context) {
    for (const each of runnablesOf(this.test?.parent)) each.timeout(PATIENCE * each.timeout());
  },
  afterAll: removeDataFolders,
};

/** The tests and hooks of a suite and of those in it, not those that have begun. */
function runnablesOf(suite: Mocha.Suite | undefined): Mocha.Runnable[] {
  if (suite === undefined) return [];
  const { _beforeAll, _beforeEach, _afterEach, _afterAll } = suite as unknown as Record<string, Mocha.Runnable[]>;
  const own = [_beforeAll, _beforeEach, _afterEach, _afterAll].flatMap((hooks) => hooks ?? []);
  return [...own, ...suite.tests, ...suite.suites.flatMap(runnablesOf)];
}
