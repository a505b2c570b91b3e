import type { Knex } from 'knex';
import { openDatabase } from '../../core/storage/database';
import { newEmbeddedFolder } from './data-folder';
import { quiet } from './databases';
import { countGateway, emptyRedis, newDatabase } from './shared';

export interface RealStores {
  readonly redisUrl: string;
  readonly databaseUrl: string;
}

/** The place of a gateway's money and records: Redis and Postgres, or the embedded stores of a data folder. */
export type Stores = RealStores | { readonly dataFolder: string };

/**
 * Makes stores of the kind in the environment variable STORES: `real`, which is the default, `compose`, which adds the settings of the
 * Compose file, or `embedded`.
 */
export async function newStores(gateways = 0): Promise<Stores> {
  if (kindOfStores() === 'embedded') return { dataFolder: await newEmbeddedFolder() };
  return realStores(gateways);
}

/** Returns the stores of a gateway that is about to start. Their Redis is not emptied before {@link leaveStores}. */
export async function enterStores(stores: Stores | 'real' | undefined): Promise<Stores> {
  if (stores === undefined) return newStores(1);
  if (stores === 'real') return realStores(1);
  if ('redisUrl' in stores) countGateway(stores.redisUrl, 1);
  return stores;
}

export function leaveStores(stores: Stores): void {
  if ('redisUrl' in stores) countGateway(stores.redisUrl, -1);
}

/**
 * Empties an unused Redis and makes a database on the shared Postgres, for tests that start several gateways on them, break them or look into them.
 * The files of those tests are named `*.real.test.ts`.
 */
export async function realStores(gateways = 0): Promise<RealStores> {
  if (kindOfStores() === 'embedded') throw new Error('This story needs STORES=real: name its file *.real.test.ts.');
  return { redisUrl: await emptyRedis(gateways), databaseUrl: await newDatabase() };
}

/** Opens the database of a gateway. An embedded one can be opened only while no gateway uses it. */
export function databaseOf(stores: Stores): Promise<Knex> {
  return openDatabase({ dataFolder: '', ...stores, log: quiet });
}

const KINDS = ['real', 'compose', 'embedded'];

function kindOfStores(): string {
  const { STORES: kind = 'real' } = process.env;
  if (!KINDS.includes(kind)) throw new Error(`STORES is "${kind}", but it must be one of ${KINDS.join(', ')}.`);
  return kind;
}
