import { Redis } from 'ioredis';
import { removeDataFolders } from './data-folder';
import { startDocker, type TestDocker } from './docker';
import { startPostgres, type TestPostgres } from './postgres';
import { startRedis, type TestRedis } from './redis';

/**
 * One Redis, one Postgres and one Docker engine for the whole run, started when the first test asks. Loaded by mocha as a root hook, so that
 * they are stopped at the end. A test that kills or stalls a store starts its own.
 */
let redis: Promise<TestRedis> | undefined;
let postgres: Promise<TestPostgres> | undefined;
let docker: Promise<TestDocker> | undefined;

/** The shared Redis, emptied: test files run one after the other. */
export async function emptyRedis(): Promise<string> {
  redis ??= startRedis();
  const { url } = await redis;
  const client = new Redis(url);
  await client.flushall();
  client.disconnect();
  return url;
}

/** A new, empty database on the shared Postgres. */
export async function newDatabase(): Promise<string> {
  postgres ??= startPostgres();
  return (await postgres).createDatabase();
}

/** The shared Docker engine. Who starts containers ends them. */
export function sharedDocker(): Promise<TestDocker> {
  docker ??= startDocker();
  return docker;
}

export const mochaHooks = {
  async afterAll(): Promise<void> {
    await (await redis)?.stop();
    await (await postgres)?.stop();
    await (await docker)?.stop();
    await removeDataFolders();
  },
};
