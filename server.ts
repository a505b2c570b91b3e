/**
 * The entry point of all gateway processes: reads the configuration, opens the stores, the ledger and the gateway, and serves until it is
 * stopped. Each line that opens something registers how to close it; `resources.close()` closes in reverse order.
 */
import cluster from 'node:cluster';
import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setDefaultHighWaterMark } from 'node:stream';
import { openApiKeys } from './core/accounts/identify';
import { startSweeper } from './core/accounts/sweeper';
import { brokenRequestEnded, logRequests } from './core/api/request-ended';
import type { Route } from './core/api/route';
import { AccessLog } from './core/base/access-log';
import { log } from './core/base/log';
import { parseUsd } from './core/base/money';
import { countResourceLeaks } from './core/base/resource-leaks';
import { openResources, type Resources } from './core/base/resources';
import { readRole } from './core/base/role';
import { parseDuration } from './core/base/settings';
import { OpenRequests, prepareStop, stopOnFault, stopOnSignal } from './core/base/shutdown';
import { startWatchdog } from './core/base/watchdog';
import { AnswerStore } from './core/calls/answer-store';
import { watchCalls } from './core/calls/call-ended';
import { OpenCalls } from './core/calls/open-calls';
import { startRefusedCalls } from './core/calls/refused-calls';
import { openSessionIds } from './core/calls/session-ids';
import { startTopAccounts } from './core/calls/top-accounts';
import { startVendorResources } from './core/calls/vendor-resources';
import { type Configuration, configurationReader } from './core/configuration/configuration';
import { followRevisions } from './core/configuration/follow-revisions';
import { ReloadableConfiguration, restartNeededSince } from './core/configuration/live-configuration';
import { reportConfiguration } from './core/configuration/nodes';
import { recordReloads, reloadOnChange } from './core/configuration/reload-triggers';
import { CredentialRotation } from './core/configuration/rotating-credential';
import { databaseSource, fileSource, type ReadHere } from './core/configuration/source';
import { problemText } from './core/configuration/yaml-file';
import { raiseRetirements, raiseUpstreamEvents } from './core/events/upstream-events';
import { withConfiguration } from './core/gateway/gateway';
import type { Policy } from './core/gateway/policy';
import { ejectionRules } from './core/health/ejection';
import { startHealthExchange } from './core/health/exchange';
import { UpstreamHealth } from './core/health/health';
import { exposeUpstreams } from './core/health/metrics';
import { answerBrokenRequests } from './core/http/broken-requests';
import { disconnectIdleClients, limitConnections, limitTimes } from './core/http/connection-limits';
import { allowOrigins } from './core/http/cors';
import { limitPipelining } from './core/http/pipelining';
import { watchForwarding } from './core/http/proxies';
import { readPortDomain } from './core/http/public-url';
import { AllowanceLedger } from './core/ledger/allowances/allowance-ledger';
import { startGuardian } from './core/ledger/guardian';
import { leaseTimes } from './core/ledger/lease-times';
import { startLeases } from './core/ledger/leases';
import { openLedger, openShipper, refuseHalfOfTheStores } from './core/ledger/open-ledger';
import { startOutboxWatch } from './core/ledger/outbox/outbox-watch';
import { ensureReady } from './core/ledger/recovery';
import { createSettler } from './core/ledger/settler';
import { openSpool, type Spool } from './core/ledger/spool/spool';
import { openSpoolFolder } from './core/ledger/spool/spool-folder';
import { Operators, readAdminToken, refuseShortToken } from './core/operators/operators';
import { startUsageRollUp } from './core/records/usage-roll-up';
import { LiveRollouts } from './core/rollouts/live-rollouts';
import { exposeProcess } from './core/serving/expose-process';
import { startExpressGateway } from './core/serving/express-gateway';
import { openFrontDoor } from './core/serving/front-door';
import { loadPlugins } from './core/serving/load-plugins';
import { announce, explainStartFailure, factsOf, readArguments } from './core/serving/start';
import { hostsOf, routesOf, startPlugins } from './core/serving/start-plugins';
import { openCertificates, serveWithTls } from './core/serving/tls';
import { mayServeAdmin, publishMetrics, reachPrimary, serveAsWorker } from './core/serving/worker';
import { readWorkers, runWorkers } from './core/serving/workers';
import type { SocketSettings } from './core/sockets/client-sockets';
import { checkDatabase, migrate, openDatabase } from './core/storage/database';
import { openTracing } from './core/traces/open-tracing';
import { startDeliveries } from './core/webhooks/deliver';
import { type Egress, openEgress } from './core/wire/egress';

/** The project's folder, even when this file runs from dist. */
const PROJECT_FOLDER = existsSync(join(__dirname, 'package.json')) ? __dirname : dirname(__dirname);

/** The buffer size of streams, as in Node 20. Newer versions buffer four times as much for each slow client, and there may be thousands. */
const STREAM_BUFFER_BYTES = 16 * 1024;

/** The connection to the primary process; undefined if this process is not one of its workers. */
const primary = reachPrimary();

/** How long the process waits for the last settlements when it stops, in milliseconds. Calls whose clients disconnected are still charged. */
const LAST_SETTLEMENTS_MS = 5_000;

async function main(): Promise<void> {
  setDefaultHighWaterMark(false, STREAM_BUFFER_BYTES);
  const task = readArguments(process.argv.slice(2));
  const workers = readWorkers(process.env, log);
  if (workers > 1 && cluster.isPrimary && task === 'serve') return runWorkers(workers, log);
  const resources = openResources();
  if (task === 'migrate') {
    await openMigrated(process.env, resources);
    process.stdout.write('The database is of this version.\n');
    return resources.close();
  }
  resources.keep(primary, publishMetrics);
  const files = readFiles(process.env, resources);
  if (task === 'check') {
    const configuration = files.read();
    openCertificates(configuration, files.configFolder);
    refuseShortToken(process.env['ADMIN_TOKEN'], configuration.gateway.admin.host);
    const { revision, warnings } = configuration;
    for (const warning of warnings) process.stdout.write(`${problemText(warning)} (warning)\n`);
    process.stdout.write(`The configuration in ${files.configFolder} is valid (revision ${revision}).\n`);
    return resources.close();
  }
  const stores = await openStores(files, resources);
  const money = await openMoney(files, stores, resources);
  const gateway = await openGateway(files, stores, money, resources);
  await listen(files, stores, money, gateway, resources);
}

/** Reads system.config.yml and loads its plugins. Returns the function that reads gateway.config.yml, with the other results. */
function readFiles(env: NodeJS.ProcessEnv, { keep }: Resources) {
  readPortDomain(env);
  const configFolder = resolve(env['TOLLGATE_CONFIG_DIR'] ?? PROJECT_FOLDER);
  const watchdog = keep(startWatchdog(log));
  const loaded = loadPlugins(configFolder, env);
  const readHere = configurationReader(loaded);
  const read: ReadHere<Configuration<Policy>> = (text) => readHere(configFolder, env, text);
  return { ...loaded, env, configFolder, dataFolder: dataFolderOf(env), read, watchdog };
}

const dataFolderOf = (env: NodeJS.ProcessEnv) => resolve(env['DATA_DIR'] || join(PROJECT_FOLDER, '.tollgate'));

type Files = ReturnType<typeof readFiles>;

async function openMigrated(env: NodeJS.ProcessEnv, { keep }: Resources) {
  const opened = await openDatabase({ databaseUrl: env['DATABASE_URL'], dataFolder: dataFolderOf(env), log });
  const database = keep(opened, () => opened.destroy());
  await checkDatabase(database);
  await migrate(database);
  return database;
}

/** Opens and migrates the database, and reads the configuration from its source. */
async function openStores({ env, configFolder, system, read }: Files, resources: Resources) {
  // The process reports mistakes in the configuration files before it opens a store.
  const ofFiles = system.config.source === 'file' ? read() : undefined;
  refuseHalfOfTheStores(env);
  const role = readRole(env);
  const database = await openMigrated(env, resources);
  const source = ofFiles === undefined ? databaseSource(read, database) : fileSource(read);
  const configuration = ofFiles ?? (await source.read());
  const live = new ReloadableConfiguration({
    first: configuration,
    read: source.read,
    record: recordReloads(database, log),
    needsRestart: restartNeededSince(configuration, configFolder),
    spread: primary && (() => primary.ask('reload')),
    log,
  });
  return { database, role, source, live };
}

type Stores = Awaited<ReturnType<typeof openStores>>;

/** Opens the ledger, makes it agree with Postgres, and starts everything that moves money. */
async function openMoney({ env, dataFolder, system }: Files, { database }: Stores, { keep }: Resources) {
  const { ledger, store, redis } = await openLedger(env['REDIS_URL'], system.ledger, database);
  keep(ledger, () => ledger.close());
  await ensureReady({ ledger, database, log });
  keep(startGuardian({ ledger, database, log }));
  const folder = await openSpoolFolder(join(dataFolder, 'spool'));
  const shipper = openShipper({ ledger, database, log, onWritten: (rids) => spool.written(rids) }, env);
  const times = leaseTimes(system.ledger.leaseSeconds);
  const has = (generation: string): boolean => taken?.has(generation) === true;
  const allowances = store && { store, has };
  const spool: Spool = keep(openSpool({ ledger, allowances, database, shipper, log, times, folder }));
  // The shipper closes before the spool (calls whose settlement waits on disk). The spool can then drop the calls that the shipper's last writes have
  // closed.
  keep(shipper);
  const taken =
    store && system.ledger.allowances
      ? keep(new AllowanceLedger({ inner: store, spool, log, nudge: (accountId) => shipper.nudge(accountId) }))
      : undefined;
  const calls = taken ?? ledger;
  const outbox = keep(startOutboxWatch({ ledger, shipper, database, log }));
  const stopKeyAboveE8 = parseUsd(system.excess.stopKeyAboveUsd.toFixed(8));
  keep(startSweeper({ ledger, calls, database, log, stopKeyAboveE8 }));
  keep(startUsageRollUp({ database, log }));
  const leases = keep(startLeases({ calls, ledger, log, times }));
  const settler = keep(createSettler({ ledger: calls, shipper, log, spool, giveUpAfterMs: times.giveUpAfterMs }));
  return { ledger, calls, redis, outbox, leases, settler };
}

type Money = Awaited<ReturnType<typeof openMoney>>;

/** Builds the parts of the gateway that policies and plugins use, and starts the plugins. */
async function openGateway(files: Files, stores: Stores, money: Money, { keep }: Resources) {
  const { system, plugins, proxies, env, dataFolder } = files;
  const { database, live, source, role } = stores;
  const { ledger, calls, redis, outbox, leases, settler } = money;
  const stopTracing = openTracing(env, log);
  keep(stopTracing, () => stopTracing?.());
  const refusedCalls = startRefusedCalls({ database, log });
  keep(refusedCalls, () => refusedCalls.close());
  const vendorResources = startVendorResources({ database, log, maxVendorResources: system.maxVendorResources });
  keep(vendorResources, () => vendorResources.close());
  const egress = openEgress();
  keep(egress, () => egress.close());
  const health = new UpstreamHealth({ rules: ejectionRules(system.ejection) });
  exposeUpstreams(health);
  raiseUpstreamEvents(health, database, log);
  keep(raiseRetirements(live, database, log));
  if (redis !== undefined) keep(startHealthExchange({ redis, health, log }), (stop) => stop());
  const rotation = keep(new CredentialRotation(log));
  (await rotation.prepare(live.current.catalog))();
  live.take(({ catalog }) => rotation.prepare(catalog));
  const stopping = new AbortController();
  const lines = new AccessLog(system.log.calls);
  logRequests(lines);
  const openCalls = new OpenCalls(watchCalls(lines));
  exposeProcess({ openCalls, leases, database });
  keep(startTopAccounts({ database, log, most: system.metrics.accounts }));
  const parts = {
    ledger,
    calls,
    database,
    egress,
    settler,
    leases,
    health,
    refusedCalls,
    sessionIds: await openSessionIds(database),
    vendorResources,
    answers: openAnswerStore(system),
    openCalls,
    log,
    keys: openApiKeys({ ledger, log, proxies, rates: system.keys }),
    rollouts: new LiveRollouts(),
    stepTimeoutMs: parseDuration(system.stepTimeout),
    isStopping: () => stopping.signal.aborted,
    isOutboxFull: outbox.isFull,
  };
  /** Fixes the configuration of a call, so that a reload does not change it during the call. */
  const forPolicies = (configuration: Configuration<Policy>) => withConfiguration(parts, () => configuration);
  let routes: readonly Route[] = [];
  refuseShortToken(env['ADMIN_TOKEN'], live.current.gateway.admin.host);
  const adminToken = readAdminToken(env['ADMIN_TOKEN'], dataFolder);
  const operators = new Operators({ adminToken: adminToken.token, database, proxies, log });
  const webhookRules = system.webhooks;
  if (role !== 'gateway') keep(await startDeliveries({ database, egress, rules: webhookRules, log }));
  const ofPlugins = { webhookRules, dataFolder, proxies, liveConfiguration: live, configurationSource: source };
  const forPlugins = withConfiguration(
    { ...parts, ...ofPlugins, operators, changeChecks: [], routes: () => routes },
    () => live.current,
  );
  routes = routesOf(plugins, forPlugins);
  const hosts = hostsOf(plugins, forPlugins);
  const first = forPolicies(live.current);
  const cors = system.cors === undefined ? undefined : allowOrigins(system.cors.origins);
  const frontDoor = openFrontDoor(first, {
    routes,
    hosts,
    operators,
    fastLane: system.fastLane,
    sockets: socketSettings(system),
    role,
    cors,
  });
  // Plugins start before the first call, because that call must find the rollouts.
  keep(await startPlugins(plugins, forPlugins), (stop) => stop());
  return { first, forPolicies, frontDoor, egress, openCalls, stopping, adminToken };
}

type Gateway = Awaited<ReturnType<typeof openGateway>>;

function openAnswerStore({ answerStore }: Files['system']): AnswerStore | undefined {
  if (answerStore === undefined) return undefined;
  return new AnswerStore({ maxBytes: answerStore.maxBytes, maxAgeMs: parseDuration(answerStore.maxAge) });
}

function socketSettings({ webSockets, clientIdle }: Files['system']): SocketSettings {
  const { maxPerKey, maxFrameBytes, idle, life } = webSockets;
  const times = { idleMs: parseDuration(idle), lifeMs: parseDuration(life), stalledMs: parseDuration(clientIdle) };
  return { maxPerKey, maxFrameBytes, ...times };
}

/** Accepts clients, reloads the configuration when it changes, and stops on a signal, a fault, or a request of the primary process. */
async function listen(files: Files, stores: Stores, money: Money, gateway: Gateway, { keep, close }: Resources) {
  const { system, manifests, proxies, configFolder, watchdog } = files;
  const { live, database } = stores;
  const { first, forPolicies, frontDoor, egress, openCalls, stopping, adminToken } = gateway;
  const certificates = openCertificates(live.current, configFolder);
  const servers = await startExpressGateway(first, system, manifests, frontDoor, log);
  for (const server of [servers.http, servers.admin]) limitPipelining(server);
  for (const listener of ['http', 'admin'] as const) {
    const own = certificates[listener];
    if (own === undefined) continue;
    serveWithTls(servers[listener], own);
    live.take(() => () => own.reload(log));
    if (system.watchConfig) keep(own.watch(log), (stop) => stop());
  }
  keep(servers, async ({ http, admin }) => {
    for (const server of [http, admin]) {
      server.close();
      server.closeAllConnections();
    }
    await money.leases.none(LAST_SETTLEMENTS_MS);
  });
  live.take(async (next) => {
    const prepared = forPolicies(next);
    const commits = [frontDoor.prepare(prepared), await servers.prepare(prepared)];
    return () => {
      for (const commit of commits) commit();
      retireUpstreams(egress, live.current, next);
    };
  });
  const openRequests = new OpenRequests();
  openRequests.watch(servers.http);
  watchForwarding(servers.http, proxies, log);
  for (const server of [servers.http, servers.admin]) {
    limitTimes(server);
    limitConnections(server, system.connections, proxies, log);
  }
  disconnectIdleClients(servers.http, parseDuration(system.clientIdle));
  const sockets = frontDoor.takeUpgrades(servers.http);
  for (const server of [servers.http, servers.admin]) answerBrokenRequests(server, brokenRequestEnded);
  // The public listener is already open, so its limits are set before the first `await`.
  if (await mayServeAdmin(primary)) await servers.openAdmin();
  const { kind: source } = stores.source;
  const stopReloading = reloadOnChange({ live, source, configFolder, isWatching: system.watchConfig, log });
  if (source === 'database') keep(followRevisions({ live, source: stores.source, database, log }));
  keep(reportConfiguration({ live, source, database, log }), (stop) => stop());
  const closeSockets = () => sockets.leave();
  const none = () => Promise.all([openRequests.none(), openCalls.none(), sockets.none()]);
  const stop = prepareStop(
    {
      begin: () => {
        stopping.abort();
        closeSockets();
      },
      finish: async () => {
        await stopReloading();
        await none();
      },
      cutOff: () => openCalls.cutOff(),
      close,
    },
    parseDuration(system.shutdownGrace),
    log,
  );
  watchdog.serving(openRequests);
  countResourceLeaks(log);
  const isEmbedded = money.redis === undefined;
  const facts = factsOf(servers, live.current, isEmbedded, adminToken.file);
  if (primary === undefined) {
    announce(facts, isEmbedded);
    stopOnSignal(stop, log);
    whenUncaught = stopOnFault(stop, log);
  } else {
    const stopWorker = serveAsWorker(primary, {
      servers,
      live,
      closeSockets,
      none,
      stop,
      facts,
      log,
    });
    whenUncaught = stopOnFault(stopWorker, log);
  }
}

/** Closes the connections to upstreams that are no longer configured. */
function retireUpstreams(egress: Egress, before: Configuration, next: Configuration): void {
  const names = new Set(next.catalog.upstreams.map(({ name }) => name));
  for (const { name } of before.catalog.upstreams) if (!names.has(name)) egress.retire(name);
}

/** Handles uncaught errors. Until the process serves calls, an error means that it failed to start. */
let whenUncaught: (fault: unknown, origin: string) => void = explainStartFailure;

process.on('uncaughtException', (fault, origin) => whenUncaught(fault, origin));
process.on('unhandledRejection', (fault) => whenUncaught(fault, 'unhandledRejection'));
main().catch(explainStartFailure);
