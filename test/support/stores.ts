import type { Knex } from 'knex';
import { openDatabase } from '../../core/database';
import { newEmbeddedFolder } from './data-folder';
import { quiet } from './databases';
import { emptyRedis, newDatabase } from './shared';

export interface RealStores {
  readonly redisUrl: string;
  readonly databaseUrl: string;
}

/** Where a gateway keeps money and records: Redis and Postgres, or the embedded stores of a data folder. */
export type Stores = RealStores | { readonly dataFolder: string };

/** New stores of the kind that the environment variable STORES names: `real`, which is the default, or `embedded`. */
export async function newStores(): Promise<Stores> {
  if (kindOfStores() === 'real') return realStores();
  return { dataFolder: await newEmbeddedFolder() };
}

/**
 * Empties the shared Redis and makes a new database of the shared Postgres, for stories that start several gateways on them,
 * break them or look into them. The files of those stories are named `*.real.test.ts`.
 */
export async function realStores(): Promise<RealStores> {
  if (kindOfStores() === 'embedded') throw new Error('This story needs STORES=real: name its file *.real.test.ts.');
  return { redisUrl: await emptyRedis(), databaseUrl: await newDatabase() };
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
