/**
 * The only process entry: reads the configuration, opens the stores, puts the pieces together, serves until it is told to
 * stop. `--check` reads and checks the configuration and ends.
 */
import { existsSync } from 'node:fs';
import type { Server } from 'node:http';
import { dirname, join, resolve } from 'node:path';
import { setDefaultHighWaterMark } from 'node:stream';
import { readAdminToken } from './core/admin-token';
import { openApiKeys } from './core/api-keys';
import { answerBrokenRequests } from './core/broken-requests';
import { type Configuration, configurationReader } from './core/configuration';
import { reportConfiguration } from './core/configuration-nodes';
import { databaseSource, fileSource, type ReadHere } from './core/configuration-source';
import { limitConnections } from './core/connection-limits';
import { checkDatabase, migrate, openDatabase } from './core/database';
import { type Egress, openEgress } from './core/egress';
import { ejectionRules } from './core/ejection';
import { startExpressGateway } from './core/express-gateway';
import { followRevisions } from './core/follow-revisions';
import { openFrontDoor } from './core/front-door';
import { type GatewayParts, withConfiguration } from './core/gateway';
import { startHealthExchange } from './core/health-exchange';
import { leaveIdleClients } from './core/idle-clients';
import type { DrainOptions } from './core/ledger/drain';
import { type Drainer, startDrainer } from './core/ledger/drainer';
import { startDrainerThread } from './core/ledger/drainer-thread';
import { startGuardian } from './core/ledger/guardian';
import { leaseTimes } from './core/ledger/lease-times';
import { startLeases } from './core/ledger/leases';
import type { Ledger } from './core/ledger/ledger';
import { MemoryLedger } from './core/ledger/memory-ledger';
import { startOutboxWatch } from './core/ledger/outbox-watch';
import { ensureReady } from './core/ledger/recovery';
import { RedisLedger } from './core/ledger/redis-ledger';
import type { ReplicaPolicy } from './core/ledger/replicas';
import { createSettler } from './core/ledger/settler';
import { openSpool } from './core/ledger/spool';
import { openSpoolFolder } from './core/ledger/spool-folder';
import { LiveConfiguration } from './core/live-configuration';
import { LiveRollouts } from './core/live-rollouts';
import { type LoadedPlugins, loadPlugins } from './core/load-plugins';
import { log } from './core/log';
import { OpenCalls } from './core/open-calls';
import { closeWithConnection } from './core/pipelined';
import type { Route } from './core/plugin';
import { readPortDomain } from './core/port-domain';
import { proxiesInFront } from './core/proxies';
import { checkRedis, connectRedis, type RedisClient } from './core/redis';
import { startRefusedCalls } from './core/refused-calls';
import { recordReloads, reloadOnChange } from './core/reload-triggers';
import { restartNeededSince } from './core/restart-needed';
import { readRole } from './core/role';
import { parseDuration } from './core/settings';
import { OpenRequests, prepareStop, stopOnFault, stopOnSignal } from './core/shutdown';
import { EXIT_CONFIGURATION, StartFailure } from './core/start-failure';
import { hostsOf, routesOf, startPlugins } from './core/start-plugins';
import { startSweeper } from './core/sweeper';
import { describeFault } from './core/thrown';
import { UpstreamHealth } from './core/upstream-health';
import { exposeUpstreams } from './core/upstream-metrics';
import { startUsageRollUp } from './core/usage-roll-up';
import { ConfigurationError, problemText } from './core/yaml-file';

/** The project's folder, also when this runs from dist. */
const PROJECT_FOLDER = existsSync(join(__dirname, 'package.json')) ? __dirname : dirname(__dirname);

/** As on Node 20; newer ones keep four times as much for each caller that reads slowly, and there may be thousands. */
const STREAM_BUFFER_BYTES = 16 * 1024;

async function main(): Promise<void> {
  setDefaultHighWaterMark(false, STREAM_BUFFER_BYTES);
  const { env } = process;
  const isCheck = readArguments(process.argv.slice(2));
  readPortDomain(env);
  const configFolder = resolve(env['TOLLGATE_CONFIG_DIR'] ?? PROJECT_FOLDER);
  const loaded = loadPlugins(configFolder, env);
  const readHere = configurationReader(loaded);
  const read: ReadHere = (text) => readHere(configFolder, env, text);
  if (isCheck) {
    const { revision, warnings } = read();
    for (const warning of warnings) process.stdout.write(`${problemText(warning)} (warning)\n`);
    process.stdout.write(`The configuration in ${configFolder} is sound (revision ${revision}).\n`);
    return;
  }
  await serve(loaded, configFolder, read);
}

const USAGE = `Usage: node dist/server.js [--check]

Starts Tollgate with gateway.config.yml and system.config.yml of TOLLGATE_CONFIG_DIR (default: the project's folder).
  --check  reads and checks the configuration, and ends
  --help   shows this
`;

/** True for --check. Anything that is not understood starts nothing. */
function readArguments(given: readonly string[]): boolean {
  if (given.length === 0) return false;
  if (given.length === 1 && given[0] === '--check') return true;
  if (given.length === 1 && given[0] === '--help') {
    process.stdout.write(USAGE);
    process.exit(0);
  }
  process.stderr.write(`tollgate does not know ${given.join(' ')}.\n\n${USAGE}`);
  process.exit(2);
}

async function serve({ system, plugins }: LoadedPlugins, configFolder: string, read: ReadHere): Promise<void> {
  const { env } = process;
  // Mistakes in the files are told before anything is opened.
  const ofFiles = system.config.source === 'file' ? read() : undefined;
  refuseHalfOfTheStores(env);
  const role = readRole(env);
  const dataFolder = resolve(env['DATA_DIR'] || join(PROJECT_FOLDER, '.tollgate'));
  const database = await openDatabase({ databaseUrl: env['DATABASE_URL'], dataFolder, log });
  await checkDatabase(database);
  await migrate(database);
  const configurationSource = ofFiles === undefined ? databaseSource(read, database) : fileSource(read);
  const configuration = ofFiles ?? (await configurationSource.read());
  const live = new LiveConfiguration({
    first: configuration,
    read: configurationSource.read,
    record: recordReloads(database, log),
    needsRestart: restartNeededSince(configuration, configFolder),
    log,
  });
  const { ledger, redis } = await openLedger(env['REDIS_URL'], system.ledger);
  await ensureReady({ ledger, database, log });
  const guardian = startGuardian({ ledger, database, log });
  const folder = await openSpoolFolder(join(dataFolder, 'spool'));
  const drainer = openDrainer({ ledger, database, log, onWritten: (rids) => spool.written(rids) }, env);
  const outbox = startOutboxWatch({ ledger, drainer, log });
  const sweeper = startSweeper({ ledger, database, log });
  const stopRollUp = startUsageRollUp({ database, log });
  const times = leaseTimes(system.ledger.leaseSeconds);
  const spool = openSpool({ ledger, database, drainer, log, times, folder });
  const settler = createSettler({ ledger, drainer, log, spool, giveUpAfterMs: times.giveUpAfterMs });
  const leases = startLeases({ ledger, log, times });
  const refusedCalls = startRefusedCalls({ database, log });
  const egress = openEgress();
  const health = new UpstreamHealth({ rules: ejectionRules(system.ejection) });
  exposeUpstreams(health);
  const stopExchange = redis === undefined ? undefined : startHealthExchange({ redis, health, log });
  let isDraining = false;
  let routes: readonly Route[] = [];
  const parts: GatewayParts = {
    ledger,
    database,
    keys: openApiKeys({ ledger, log }),
    egress,
    settler,
    leases,
    health,
    rollouts: new LiveRollouts(),
    refusedCalls,
    openCalls: new OpenCalls(),
    log,
    dataFolder,
    proxies: proxiesInFront(plugins),
    liveConfiguration: live,
    configurationSource,
    changeChecks: [],
    stepTimeoutMs: parseDuration(system.stepTimeout),
    routes: () => routes,
    isDraining: () => isDraining,
    isOutboxFull: outbox.isFull,
  };
  const adminToken = readAdminToken(env['ADMIN_TOKEN'], dataFolder);
  const gatewayOfPlugins = withConfiguration(parts, () => live.current);
  routes = routesOf(plugins, gatewayOfPlugins);
  const hosts = hostsOf(plugins, gatewayOfPlugins);
  const first = withConfiguration(parts, always(live.current));
  const frontDoor = openFrontDoor(first, { routes, hosts, adminToken, fastLane: system.fastLane, role });
  const manifests = plugins.map(({ manifest }) => manifest);
  // Before anybody is served: a first call must not find a rollout that is not known yet.
  const stopPlugins = await startPlugins(plugins, gatewayOfPlugins);
  const servers = await startExpressGateway(first, system, manifests, frontDoor, log);
  live.take(async (next) => {
    const gateway = withConfiguration(parts, always(next));
    const commits = [frontDoor.prepare(gateway), await servers.prepare(gateway)];
    return () => {
      for (const commit of commits) commit();
      retireUpstreams(egress, live.current, next);
    };
  });
  const openRequests = new OpenRequests();
  limitTimes(servers.http, openRequests);
  limitConnections(servers.http, system.connections, log);
  leaveIdleClients(servers.http, parseDuration(system.clientIdle));
  frontDoor.takeUpgrades(servers.http);
  for (const server of [servers.http, servers.admin]) answerBrokenRequests(server);
  const { is: source } = configurationSource;
  const stopReloading = reloadOnChange({ live, source, configFolder, isWatching: system.watchConfig, log });
  const stopFollowing = source === 'database' ? followRevisions({ live, database, log }) : undefined;
  const stopReporting = reportConfiguration({ live, source, database, log });
  const stop = prepareStop(
    {
      begin: () => {
        isDraining = true;
      },
      finish: () => {
        stopReloading();
        return openRequests.none();
      },
      cutOff: () => parts.openCalls.cutOff(),
      close: async () => {
        for (const server of [servers.http, servers.admin]) {
          server.close();
          server.closeAllConnections();
        }
        await leases.none(LAST_SETTLEMENTS_MS);
        await stopFollowing?.();
        await stopReporting();
        await stopPlugins();
        await settler.stop();
        await leases.stop();
        await guardian.stop();
        await sweeper.stop();
        await stopRollUp();
        await outbox.stop();
        await refusedCalls.close();
        await drainer.stop();
        await spool.stop();
        await egress.close();
        await stopExchange?.();
        await ledger.close();
        await database.destroy();
      },
    },
    parseDuration(system.shutdownGrace),
    log,
  );
  announce(servers, live.current, redis === undefined, adminToken.file);
  stopOnSignal(stop, log);
  whenUncaught = stopOnFault(stop, log);
}

/** A call whose client has left may still be at its end: it is charged before the process ends. */
const LAST_SETTLEMENTS_MS = 5_000;

/** What a call runs with does not change under it. */
function always(configuration: Configuration): () => Configuration {
  return () => configuration;
}

/** Upstreams that are configured no more are dialled no more. */
function retireUpstreams(egress: Egress, before: Configuration, next: Configuration): void {
  const names = new Set(next.catalog.upstreams.map(({ name }) => name));
  for (const { name } of before.catalog.upstreams) if (!names.has(name)) egress.retire(name);
}

/** A ledger in the process over a shared Postgres would let two processes spend the same money. */
function refuseHalfOfTheStores({ REDIS_URL: redis = '', DATABASE_URL: database = '' }: NodeJS.ProcessEnv): void {
  if ((redis === '') === (database === '')) return;
  const [set, missing] = redis === '' ? ['DATABASE_URL', 'REDIS_URL'] : ['REDIS_URL', 'DATABASE_URL'];
  throw new StartFailure(`${set} is set and ${missing} is not: set both, or neither for the embedded stores.`);
}

/** Without a Redis the ledger is in the process: the embedded default. */
async function openLedger(
  redisUrl: string | undefined,
  replicas: ReplicaPolicy,
): Promise<{ ledger: Ledger; redis: RedisClient | undefined }> {
  if (redisUrl === undefined || redisUrl === '') {
    if (replicas.waitReplicas > 0)
      throw new StartFailure('ledger.waitReplicas is set, and the embedded ledger has none.');
    return { ledger: new MemoryLedger(), redis: undefined };
  }
  const redis = connectRedis(redisUrl, log);
  await checkRedis(redis);
  return { ledger: new RedisLedger({ redis, replicas: { ...replicas, log } }), redis };
}

/** Beside the calls, where the stores are beside the process. */
function openDrainer(options: DrainOptions, env: NodeJS.ProcessEnv): Drainer {
  const { REDIS_URL: redisUrl, DATABASE_URL: databaseUrl } = env;
  if (!redisUrl || !databaseUrl) return startDrainer(options);
  const onWritten = (rids: readonly string[]) => options.onWritten?.(rids);
  return startDrainerThread({ redisUrl, databaseUrl, log, onWritten });
}

/** Slow senders of headers are closed; bodies have their own limits; idle connections may be used again for a while. */
function limitTimes(server: Server, openRequests: OpenRequests): void {
  server.headersTimeout = 10_000;
  server.requestTimeout = 0;
  server.keepAliveTimeout = 75_000;
  openRequests.watch(server);
  server.on('request', closeWithConnection);
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

/** What a person can mend is said in words; everything else keeps its stack. */
function explain(error: unknown): never {
  if (error instanceof ConfigurationError || error instanceof StartFailure) {
    const number = error instanceof ConfigurationError ? error.number : undefined;
    const which =
      number === undefined ? '' : `The newest applied configuration, revision ${number}, cannot be taken here.\n`;
    process.stderr.write(`tollgate cannot start.\n${which}${error.message}\n`);
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
  log.fatal({ error: describeFault(error) }, 'an unexpected failure');
  process.exit(1);
}

/** Until the process serves, a fault is one of the start. */
let whenUncaught: (fault: unknown, origin: string) => void = explain;

process.on('uncaughtException', (fault, origin) => whenUncaught(fault, origin));
process.on('unhandledRejection', (fault) => whenUncaught(fault, 'unhandledRejection'));
main().catch(explain);
