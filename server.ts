/**
 * The only process entry: reads the configuration, opens the stores, puts the pieces together, serves until it is told to
 * stop. `--check` reads and checks the configuration and ends.
 */
import { existsSync } from 'node:fs';
import type { Server } from 'node:http';
import { dirname, join, resolve } from 'node:path';
import { readAdminToken, showsToken } from './core/admin-token';
import { openApiKeys } from './core/api-keys';
import { type Configuration, loadConfiguration, loadSystemSettings } from './core/configuration';
import type { SystemSettings } from './core/configuration-schema';
import { checkDatabase, migrate, openDatabase } from './core/database';
import { openEgress } from './core/egress';
import { fail } from './core/errors';
import { type Listener, type Manifest, type Served, startExpressGateway } from './core/express-gateway';
import { compileCallTable, pathOf } from './core/fast-lane';
import type { Gateway } from './core/gateway';
import { newRequestId, sendError } from './core/http';
import { startDrainer } from './core/ledger/drainer';
import { startLeases } from './core/ledger/leases';
import type { Ledger } from './core/ledger/ledger';
import { MemoryLedger } from './core/ledger/memory-ledger';
import { ensureReady } from './core/ledger/recovery';
import { openRedisLedger } from './core/ledger/redis-ledger';
import { createSettler } from './core/ledger/settler';
import { log } from './core/log';
import type { Route } from './core/plugin';
import { checkRedis, connectRedis } from './core/redis';
import { startRefusedCalls } from './core/refused-calls';
import { compileRoutes } from './core/router';
import { compileCheck } from './core/settings';
import { OpenRequests, stopOnSignal } from './core/shutdown';
import { EXIT_CONFIGURATION, StartFailure } from './core/start-failure';
import { UpstreamHealth } from './core/upstream-health';
import { ConfigurationError } from './core/yaml-file';

/** The project's folder, also when this runs from dist. */
const PROJECT_FOLDER = existsSync(join(__dirname, 'package.json')) ? __dirname : dirname(__dirname);

async function main(): Promise<void> {
  const { env } = process;
  env['EG_APP_ROOT'] = __dirname;
  const configFolder = resolve(env['TOLLGATE_CONFIG_DIR'] ?? PROJECT_FOLDER);
  const system = loadSystemSettings(configFolder, env);
  const manifests = loadManifests(system);
  const policies = manifests.flatMap(({ tollgate }) => tollgate.policies ?? []);
  const configuration = loadConfiguration(configFolder, env, policies);
  if (process.argv.includes('--check')) {
    process.stdout.write(`The configuration in ${configFolder} is sound (revision ${configuration.revision}).\n`);
    return;
  }
  await serve(configuration, system, manifests);
}

/** Every plugin is required here first, because Express Gateway swallows what goes wrong at import. */
function loadManifests(system: SystemSettings): Manifest[] {
  return Object.entries(system.plugins).map(([name, settings]) => {
    const manifest = requireManifest(name, settings.package);
    const { plugin } = manifest.tollgate;
    plugin?.register?.();
    if (plugin !== undefined) checkPluginSettings(name, plugin.schema, settings);
    return manifest;
  });
}

function requireManifest(name: string, packageName: string): Manifest {
  try {
    const manifest = require(packageName) as Partial<Manifest>;
    if (manifest.tollgate !== undefined) return manifest as Manifest;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw new StartFailure(`system.config.yml: plugin "${name}" cannot be loaded from ${packageName}: ${reason}`, {
      cause,
    });
  }
  throw new StartFailure(
    `system.config.yml: ${packageName} of plugin "${name}" is not a Tollgate plugin: its manifest must be made with pluginManifest or policiesManifest`,
  );
}

function checkPluginSettings(name: string, schema: object, { package: _, ...settings }: { package: string }): void {
  const checked = compileCheck({ additionalProperties: false, ...schema })(settings);
  if ('problems' in checked) {
    const lines = checked.problems.map(
      ({ path, message }) => `system.config.yml: plugins.${[name, ...path].join('.')}: ${message}`,
    );
    throw new StartFailure(lines.join('\n'));
  }
}

async function serve(
  configuration: Configuration,
  system: SystemSettings,
  manifests: readonly Manifest[],
): Promise<void> {
  const { env } = process;
  const dataFolder = resolve(env['DATA_DIR'] ?? join(PROJECT_FOLDER, '.tollgate'));
  const database = await openDatabase({ databaseUrl: env['DATABASE_URL'], dataFolder, log });
  await checkDatabase(database);
  await migrate(database);
  const { ledger, isEmbedded } = await openLedger(env['REDIS_URL']);
  await ensureReady({ ledger, database, log });
  const drainer = startDrainer({ ledger, database, log });
  const settler = createSettler({ ledger, drainer, log });
  const leases = startLeases({ ledger, log });
  const refusedCalls = startRefusedCalls({ database, log });
  const egress = openEgress();
  let isDraining = false;
  const gateway: Gateway = {
    ledger,
    database,
    keys: openApiKeys({ ledger, log }),
    egress,
    settler,
    leases,
    health: new UpstreamHealth(),
    refusedCalls,
    log,
    catalog: configuration.catalog,
    configRevision: configuration.revision,
    isDraining: () => isDraining,
  };
  const adminToken = readAdminToken(env['ADMIN_TOKEN'], dataFolder);
  const served = frontDoor(gateway, configuration, system, manifests, adminToken);
  const servers = await startExpressGateway(gateway, configuration, system, manifests, served, log);
  const openRequests = new OpenRequests();
  limitTimes(servers.http, openRequests);
  announce(servers, configuration, isEmbedded, adminToken.file);
  stopOnSignal(
    () => {
      isDraining = true;
    },
    async () => {
      await openRequests.none();
      for (const server of [servers.http, servers.admin]) {
        server.close();
        server.closeAllConnections();
      }
      await settler.stop();
      await leases.stop();
      await refusedCalls.close();
      await drainer.stop();
      await egress.close();
      await ledger.close();
      await database.destroy();
    },
    log,
  );
}

async function openLedger(redisUrl: string | undefined): Promise<{ ledger: Ledger; isEmbedded: boolean }> {
  if (redisUrl === undefined || redisUrl === '') return { ledger: new MemoryLedger(), isEmbedded: true };
  const redis = connectRedis(redisUrl, log);
  await checkRedis(redis);
  return { ledger: await openRedisLedger({ redis, log }), isEmbedded: false };
}

/** Who answers what: our own API, then calls, then 405 and 404; the admin listener behind its token. */
function frontDoor(
  gateway: Gateway,
  configuration: Configuration,
  system: SystemSettings,
  manifests: readonly Manifest[],
  adminToken: ReturnType<typeof readAdminToken>,
): Served {
  const routes = manifests.flatMap((manifest): readonly Route[] => {
    const { plugin } = manifest.tollgate;
    const { package: _, ...settings } = Object.values(system.plugins).find(
      (each) => require(each.package) === manifest,
    ) ?? { package: '' };
    return plugin?.routes?.(settings, gateway) ?? [];
  });
  const publicRoutes = compileRoutes(
    routes.filter(({ listener }) => listener === 'public'),
    gateway,
  );
  const adminRoutes = compileRoutes(
    routes.filter(({ listener }) => listener === 'admin'),
    gateway,
  );
  const calls = compileCallTable(configuration.pipelines, gateway);
  return {
    answerOthers: (request, response) => {
      const place = calls.find(request);
      if (place.is === 'call') return false;
      if (publicRoutes.serve(request, response)) return true;
      if (place.is === 'other-method') {
        const allow = place.allow.join(', ');
        sendError(
          request,
          response,
          fail('METHOD_NOT_ALLOWED', { message: `Use ${allow} here.`, headers: { allow } }),
          newRequestId(),
        );
      } else {
        sendError(
          request,
          response,
          fail('NOT_FOUND', { message: `There is nothing at ${shorten(pathOf(request))}.` }),
          newRequestId(),
        );
      }
      return true;
    },
    serveCall: system.fastLane
      ? (request, response) => {
          const place = calls.find(request);
          if (place.is === 'call') place.serve(request, response);
        }
      : undefined,
    admin: (request, response, expressGateway: Listener) => {
      if (!showsToken(request, adminToken)) {
        sendError(
          request,
          response,
          fail('INVALID_API_KEY', { message: 'The admin listener needs Authorization: Bearer with the admin token.' }),
          newRequestId(),
        );
      } else if (!adminRoutes.serve(request, response)) {
        if (request.method === 'GET') expressGateway(request, response);
        else
          sendError(
            request,
            response,
            fail('FORBIDDEN', {
              message: "Express Gateway's own admin API is read-only here: edit gateway.config.yml.",
            }),
            newRequestId(),
          );
      }
    },
  };
}

function shorten(path: string): string {
  return path.length > 100 ? `${path.slice(0, 100)}…` : path;
}

/** Slow senders of headers are closed; bodies have their own limits; idle connections may be used again for a while. */
function limitTimes(server: Server, openRequests: OpenRequests): void {
  server.headersTimeout = 10_000;
  server.requestTimeout = 0;
  server.keepAliveTimeout = 75_000;
  openRequests.watch(server);
}

function announce(
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

/** What a person can mend is said in words; everything else keeps its stack. */
function explain(error: unknown): never {
  if (error instanceof ConfigurationError || error instanceof StartFailure) {
    process.stderr.write(`tollgate cannot start.\n${error.message}\n`);
    process.exit(EXIT_CONFIGURATION);
  }
  if (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'EADDRINUSE' || error.code === 'EACCES') &&
    'port' in error
  ) {
    const reason = error.code === 'EADDRINUSE' ? 'is already taken' : 'may not be opened';
    process.stderr.write(
      `tollgate cannot start.\nPort ${error.port} ${reason}: stop what uses it, or set PORT or ADMIN_PORT to another.\n`,
    );
    process.exit(EXIT_CONFIGURATION);
  }
  log.fatal({ err: error }, 'an unexpected failure');
  process.exit(1);
}

process.on('uncaughtException', explain);
process.on('unhandledRejection', explain);
main().catch(explain);
