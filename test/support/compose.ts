import { parse } from 'yaml';
import { startPostgres } from './postgres';
import { startRedis } from './redis';
import { textOf } from './sources';

export const COMPOSE_FOLDER = 'deploy/compose';

interface ComposeService {
  readonly image: string;
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly networks?: readonly string[];
  readonly healthcheck?: object;
}

interface Compose {
  readonly services: Readonly<
    Record<'redis' | 'postgres' | 'gateway' | 'metrics-token' | 'collector' | 'prometheus' | 'grafana', ComposeService>
  >;
  readonly volumes: object;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
}

/** Every password of .env in the tests. */
export const PASSWORD = 'password-of-the-tests';

export const readCompose = () => parse(textOf(`${COMPOSE_FOLDER}/compose.yaml`)) as Compose;

/** Starts the distribution's Redis with the options of the Compose file. */
export function startRedisOfCompose() {
  const { command: [, ...options] = [] } = readCompose().services.redis;
  const given = options.map((option) => option.replace(/^\$\{REDIS_PASSWORD.*\}$/, PASSWORD));
  return startRedis(given, PASSWORD);
}

/** Starts the distribution's Postgres as the Compose file does: the image keeps Postgres' own `fsync=on`. */
export function startPostgresOfCompose() {
  const { command: [, ...words] = [], environment = {} } = readCompose().services.postgres;
  const settings = words.filter((word) => word !== '-c');
  return startPostgres(['fsync=on', ...settings], environment['POSTGRES_INITDB_ARGS']?.split(' '));
}
