import type { Server } from 'node:http';
import type { Configuration } from '../configuration/configuration';
import { log } from '../log';

/** Logs what serves now, from which configuration and which stores. */
export function announce(
  servers: { http: Server; admin: Server },
  configuration: Configuration,
  isEmbedded: boolean,
  tokenFile: string | undefined,
): void {
  const { upstreams } = configuration.catalog;
  log.info(
    {
      public: addressOf(servers.http),
      admin: addressOf(servers.admin),
      revision: configuration.revision,
      ...(configuration.number !== undefined && { number: configuration.number }),
      stores: isEmbedded ? 'embedded' : 'Redis and Postgres',
      ...(tokenFile === undefined ? {} : { adminTokenFile: tokenFile }),
      upstreams: upstreams.filter(({ disabled }) => disabled === undefined).map(({ name }) => name),
      disabled: Object.fromEntries(
        upstreams.filter(({ disabled }) => disabled !== undefined).map(({ name, disabled }) => [name, disabled]),
      ),
    },
    'ready',
  );
  if (isEmbedded) {
    log.warn(
      "embedded stores: one process only, and a kill can lose the last moment's charges; set REDIS_URL and DATABASE_URL for production",
    );
  }
}

function addressOf(server: Server): string {
  const address = server.address();
  return address === null || typeof address === 'string'
    ? String(address)
    : `http://${address.address}:${address.port}`;
}
