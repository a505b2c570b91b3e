import type { Server } from 'node:http';
import type { Configuration } from '../configuration/configuration';
import { log } from '../log';

/** What the log says about a serving process. */
export type Facts = Readonly<Record<string, unknown>>;

/** Returns what this process serves, with which configuration and which stores. */
export function factsOf(
  servers: { http: Server; admin: Server },
  configuration: Configuration,
  isEmbedded: boolean,
  tokenFile: string | undefined,
): Facts {
  const { upstreams } = configuration.catalog;
  const { https, admin } = configuration.gateway;
  return {
    public: addressOf(servers.http, https !== undefined),
    admin: addressOf(servers.admin, admin.tls !== undefined),
    revision: configuration.revision,
    ...(configuration.number !== undefined && { number: configuration.number }),
    stores: isEmbedded ? 'embedded' : 'Redis and Postgres',
    ...(tokenFile === undefined ? {} : { adminTokenFile: tokenFile }),
    upstreams: upstreams.filter(({ disabled }) => disabled === undefined).map(({ name }) => name),
    disabled: Object.fromEntries(
      upstreams.filter(({ disabled }) => disabled !== undefined).map(({ name, disabled }) => [name, disabled]),
    ),
  };
}

/** Logs that the process is ready, and what embedded stores cannot guarantee. */
export function announce(facts: Facts, isEmbedded: boolean): void {
  log.info(facts, 'ready');
  if (isEmbedded) {
    log.warn(
      "embedded stores: one process only, and a kill can lose the last moment's charges; set REDIS_URL and DATABASE_URL for production",
    );
  }
}

function addressOf(server: Server, hasTls: boolean): string {
  const address = server.address();
  return address === null || typeof address === 'string'
    ? String(address)
    : `http${hasTls ? 's' : ''}://${address.address}:${address.port}`;
}
