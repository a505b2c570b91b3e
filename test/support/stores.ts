import type { Knex } from 'knex';
import { openDatabase } from '../../core/storage/database';
import { newEmbeddedFolder } from './data-folder';
import { quiet } from './databases';
import { countGateway, emptyRedis, newDatabase } from './shared';

export interface RealStores {
  readonly redisUrl: string;
  readonly databaseUrl: string;
}

/** Where a gateway keeps money and records: Redis and Postgres, or the embedded stores of a data folder. */
export type Stores = RealStores | { readonly dataFolder: string };

/** New stores of the kind that the environment variable STORES names: `real`, which is the default, or `embedded`. */
export async function newStores(gateways = 0): Promise<Stores> {
  if (kindOfStores() === 'real') return realStores(gateways);
  return { dataFolder: await newEmbeddedFolder() };
}

/** The stores of a gateway that is about to start: nobody empties its Redis before {@link leaveStores}. */
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
 * Empties a Redis that no gateway uses and makes a new database of the shared Postgres, for stories that start several gateways on them,
 * break them or look into them. The files of those stories are named `*.real.test.ts`.
 */
export async function realStores(gateways = 0): Promise<RealStores> {
  if (kindOfStores() === 'embedded') throw new Error('This story needs STORES=real: name its file *.real.test.ts.');
  return { redisUrl: await emptyRedis(gateways), databaseUrl: await newDatabase() };
}

/** Opens the database of a gateway. The embedded one opens only while no gateway uses it. */
export function databaseOf(stores: Stores): Promise<Knex> {
  return openDatabase({ dataFolder: '', ...stores, log: quiet });
}

function kindOfStores(): 'real' | 'embedded' {
  const { STORES: kind = 'real' } = process.env;
  if (kind !== 'real' && kind !== 'embedded') throw new Error(`STORES is "${kind}", but it must be real or embedded.`);
  return kind;
}
