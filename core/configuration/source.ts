import type { Knex } from 'knex';
import type { Configuration } from './configuration';
import { type AppliedRevision, applyRevision, newestRevision } from './revisions';
import { ConfigurationError } from './yaml-file';

/** The source of the configuration: `config.source` of system.config.yml. */
export interface ConfigurationSource<C extends Configuration = Configuration> {
  readonly kind: 'file' | 'database';
  /** Reads the configuration that is to be in force now. @throws ConfigurationError */
  readonly read: () => Promise<C>;
  /** Parses a text as if it were this process's gateway.config.yml. @throws ConfigurationError */
  readonly check: (text: string) => C;
}

/** Reads gateway.config.yml in the configuration's folder, or parses the given text instead. @throws ConfigurationError */
export type ReadHere<C extends Configuration = Configuration> = (text?: string) => C;

export function fileSource<C extends Configuration>(read: ReadHere<C>): ConfigurationSource<C> {
  return { kind: 'file', read: async () => read(), check: read };
}

/**
 * Returns the source that reads the newest applied revision. A process that finds none applies its own file, so that all nodes begin with
 * the same configuration.
 */
export function databaseSource<C extends Configuration>(read: ReadHere<C>, database: Knex): ConfigurationSource<C> {
  return {
    kind: 'database',
    read: async () => {
      const newest = (await newestRevision(database)) ?? (await applyFile(read, database));
      try {
        return { ...read(newest.text), number: newest.number };
      } catch (error) {
        if (!(error instanceof ConfigurationError)) throw error;
        throw new ConfigurationError(error.problems, newest.number);
      }
    },
    check: read,
  };
}

async function applyFile(read: ReadHere, database: Knex): Promise<AppliedRevision> {
  const { revision, text } = read();
  const first = { revision, text, actor: 'file', note: null, restores: null, objections: [], onlyAfter: [0] };
  await applyRevision(database, first);
  const newest = await newestRevision(database);
  if (newest === undefined)
    throw new Error('the first revision of the configuration was applied but cannot be read from Postgres');
  return newest;
}
