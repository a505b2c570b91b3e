/**
 * The only file that knows Express Gateway's internals. It passes our configuration (already read and checked), our policies and
 * our routes to Express Gateway, and takes over its two servers.
 */
import { type EventEmitter, once } from 'node:events';
import type { IncomingMessage, Server, ServerOptions, ServerResponse } from 'node:http';
import { createRequire } from 'node:module';
import { format } from 'node:util';
import type { Logger } from 'pino';
import type { Call } from '../calls/call';
import type { Configuration } from '../configuration/configuration';
import type { PipelineSettings } from '../configuration/pipelines';
import type { SystemSettings } from '../configuration/schema';
import type { Listener, ServedCall } from '../gateway/call-table';
import {
  type ExpressGatewayPolicy,
  initialiseWith,
  type Manifest,
  type Middleware,
  openSchema,
} from '../gateway/manifest';
import { type PipelineGateway, type PreparedStep, prepareStep, runStep } from '../gateway/pipeline';
import type { Policy } from '../gateway/policy';

interface ExpressApp extends Listener {
  use(middleware: Middleware): void;
}

/** Names of plugin manifests whose `init` has run. A package whose manifest is missing here could not be loaded: Express Gateway swallows the error. */
const initialised = new Set<string>();

initialiseWith(({ name, tollgate: { policies } }, context) => {
  initialised.add(name);
  for (const policy of policies) context.registerPolicy(toExpressGateway(policy));
});

const CALL = Symbol('call');
type RequestWithCall = IncomingMessage & { [CALL]?: Call };

/** The gateway that new policies use. It must be set before Express Gateway runs its policy factories. */
let running: PipelineGateway | undefined;

function toExpressGateway(policy: Policy): ExpressGatewayPolicy {
  return {
    name: policy.name,
    schema: openSchema(`policies/${policy.name}`),
    policy: (action) => {
      if (running === undefined) throw new Error('Express Gateway mounted a policy before Tollgate was ready');
      const gateway = running;
      const { settings, pipeline } = ownSettings(action);
      const prepared = prepareStep({ policy, settings }, pipeline, gateway);
      mounted.add(policy.name);
      return (request, response, next) => void runInExpress(prepared, request, response, next, gateway);
    },
  };
}

/** Policies that Express Gateway has mounted into a pipeline. */
const mounted = new Set<string>();

/** The member that names the pipeline in an action's settings, because Express Gateway does not pass the name to policy factories. */
const PIPELINE = '$pipeline';

/** Returns an action's own settings, without the function that Express Gateway adds to every action. */
function ownSettings({ getCommonAuthCallback: _, [PIPELINE]: pipeline, ...settings }: Record<string, unknown>) {
  return { settings, pipeline: String(pipeline) };
}

async function runInExpress(
  prepared: PreparedStep,
  request: RequestWithCall,
  response: ServerResponse,
  next: () => void,
  gateway: PipelineGateway,
): Promise<void> {
  const call = request[CALL];
  if (call === undefined) throw new Error('Express Gateway ran a policy without a call');
  if (await runStep(prepared, call, request, response, gateway)) next();
}

export interface Served {
  /** Answers every request on the public listener that is not a call (our own API, 404, 405). For a call, returns how to serve it. */
  readonly answerUnlessCall: (request: IncomingMessage, response: ServerResponse) => ServedCall | undefined;
  /** Whether calls are served without Express. */
  readonly fastLane: boolean;
  /** Answers every request on the admin listener, or passes it on to Express Gateway's own admin API. */
  readonly admin: (request: IncomingMessage, response: ServerResponse, expressGateway: Middleware) => void;
}

export interface ExpressGateway {
  readonly http: Server;
  readonly admin: Server;
  /** Opens the admin listener to clients. */
  openAdmin(): Promise<void>;
  /** Builds the pipelines of a newly loaded configuration. Returns a function; calling it makes new calls use these pipelines. */
  prepare(gateway: PipelineGateway): Promise<() => void>;
}

interface EgConfig {
  configTypes: Record<
    'system' | 'gateway',
    { validator(value: unknown): { isValid: boolean; error: string }; configProperty: string }
  >;
  systemConfig: unknown;
  gatewayConfig: unknown;
  models: Record<string, unknown>;
}

/** Starts Express Gateway with a configuration. Rejects if a pipeline or plugin could not be mounted, because Express Gateway would only log it. */
export async function startExpressGateway(
  gateway: PipelineGateway,
  system: SystemSettings,
  manifests: readonly Manifest[],
  served: Served,
  log: Logger,
): Promise<ExpressGateway> {
  running = gateway;
  // Deleted, because Express Gateway would use these proxies for all its own requests. Tollgate has its own setting for proxies of upstreams.
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']) delete process.env[name];
  process.env['EG_DISABLE_CONFIG_WATCH'] = '1';
  process.env['EG_CONFIG_DIR'] ??= __dirname;
  const load = createRequire(__filename);
  replaceLogger(load, log);
  const leaveToPlugins = replaceSlowModules(load);
  replaceConfiguration(load, withCheckedSettings(gateway.configuration), system);
  // Express Gateway generates an id for each request, which is slow, and no code reads the id.
  (load('uuid62') as { v4: () => string }).v4 = () => '';
  openServersWith(load, SERVER_OPTIONS);
  const held = holdAdmin(load);
  const entrance: Entrance = { pipelines: undefined };
  mountRoutes(load, served, entrance);
  const eventBus = load('express-gateway/lib/eventBus') as EventEmitter;
  const isOpen = once(eventBus, 'http-ready') as Promise<[{ httpServer: Server }]>;
  const run = (load('express-gateway') as () => { load(path: string): { run(): Promise<unknown> } })()
    .load(process.env['EG_CONFIG_DIR'])
    .run();
  // `run` rejects if a pipeline cannot be mounted, but resolves only when the admin listener is open. `isOpen` (the public listener) ends the wait.
  await Promise.race([run, isOpen]);
  leaveToPlugins();
  const [{ httpServer: http }] = await isOpen;
  const { admin, openAdmin } = await held;
  assertMounted(gateway.configuration.pipelines, manifests);
  takeOver(http, served);
  takeOverAdmin(admin, served);
  return { http, admin, openAdmin, prepare: (next) => preparePipelines(load, next, served, entrance) };
}

/**
 * Node checks its timeouts every second instead of every thirty, so that a slow client is disconnected in time. We check the Host header
 * ourselves, because its absence must be reported in our own error format.
 */
const SERVER_OPTIONS = { connectionsCheckingInterval: 1_000, requireHostHeader: false } as const;

/** Passes options to the servers that Express Gateway creates, because Node takes these options only at creation. */
function openServersWith(load: NodeJS.Require, options: ServerOptions): void {
  const http = load('node:http') as { createServer(...given: unknown[]): Server };
  const { createServer } = http;
  http.createServer = (...given) => createServer(...(given.length === 1 ? [options, ...given] : given));
}

/** Keeps Express Gateway's admin server from listening at its creation, because only one of several workers opens it. */
function holdAdmin(load: NodeJS.Require): Promise<Pick<ExpressGateway, 'admin' | 'openAdmin'>> {
  const makeAdmin = load('express-gateway/lib/rest') as (...given: unknown[]) => unknown;
  const { prototype } = load('node:net').Server as { prototype: { listen(...address: unknown[]): Server } };
  const { listen } = prototype;
  return new Promise((resolve) => {
    replaceModule(load, 'express-gateway/lib/rest', (...given: unknown[]) => {
      prototype.listen = function hold(this: Server, ...address) {
        const openAdmin = async () => {
          const isListening = once(this, 'listening');
          listen.apply(this, address);
          await isListening;
        };
        resolve({ admin: this, openAdmin });
        return this;
      };
      try {
        return makeAdmin(...given);
      } finally {
        prototype.listen = listen;
      }
    });
  });
}

/** The pipelines that serve calls through Express after a reload. Undefined before the first reload, while the pipelines of the start serve. */
interface Entrance {
  pipelines: Middleware | undefined;
}

/**
 * Builds the pipelines of another configuration with the one part of Express Gateway's hot reload that does this. The whole
 * reload would run every `init` again and append routes to the app. On an error it would end the process or stay silent.
 */
async function preparePipelines(
  load: NodeJS.Require,
  gateway: PipelineGateway,
  { fastLane }: Served,
  entrance: Entrance,
): Promise<() => void> {
  const config = load('express-gateway/lib/config') as EgConfig;
  const gatewayConfig = checkedByExpressGateway(config, 'gateway', withCheckedSettings(gateway.configuration));
  running = gateway;
  const pipelines = fastLane ? undefined : await buildPipelines(load, { ...config, gatewayConfig });
  return () => {
    // Express Gateway's admin API shows `config.gatewayConfig`, so a reload replaces it.
    config.gatewayConfig = gatewayConfig;
    entrance.pipelines = pipelines;
  };
}

async function buildPipelines(load: NodeJS.Require, config: object): Promise<Entrance['pipelines']> {
  const { bootstrap } = load('express-gateway/lib/gateway/pipelines') as {
    bootstrap(context: { app: unknown; config: object }): Promise<NonNullable<Entrance['pipelines']>>;
  };
  const { Router } = createRequire(load.resolve('express-gateway'))('express') as { Router(): unknown };
  const router = await bootstrap({ app: Router(), config });
  // Waits one turn of the event loop, because Express Gateway adds its policies to the router in promises that it does not await.
  await new Promise((resolve) => setImmediate(resolve));
  return router;
}

/** Replaces Express Gateway's logger, which uses winston. Its lines go to our log, those of level info as debug. */
function replaceLogger(load: NodeJS.Require, log: Logger): void {
  const child = log.child({ from: 'express-gateway' });
  const write =
    (level: 'debug' | 'warn' | 'error') =>
    (message: unknown, ...rest: unknown[]) => {
      if (child.isLevelEnabled(level)) child[level](format(message, ...rest));
    };
  const debug = write('debug');
  const warn = write('warn');
  const logger = { error: write('error'), warn, log: debug, info: debug, verbose: debug, debug, silly: debug };
  const names = ['gateway', 'policy', 'config', 'db', 'admin', 'plugins'];
  replaceModule(load, 'express-gateway/lib/logger', {
    ...Object.fromEntries(names.map((name) => [name, logger])),
    createLoggerWithLabel: () => logger,
  });
}

function replaceModule(load: NodeJS.Require, name: string, exports: unknown): void {
  const filename = load.resolve(name);
  const Module = load('node:module') as new (id: string) => NodeJS.Module;
  const module = new Module(filename);
  Object.assign(module, { exports, loaded: true, filename });
  load.cache[filename] = module;
}

/**
 * Replaces modules that Express Gateway loads but rarely uses, which would take a quarter of the start's time. Returns a function that
 * restores the packages for plugins, after Express Gateway has loaded its own files.
 */
function replaceSlowModules(load: NodeJS.Require): () => void {
  // The services for users and tokens are loaded late, because only Express Gateway's own admin API uses them, with a Redis that it emulates.
  loadLate(load, 'express-gateway/lib/services');
  loadLate(load, 'express-gateway/lib/rest/utils/findConsumer');
  const packages: Readonly<Record<string, unknown>> = {
    // Express Gateway would use these modules to fetch schemas of conditions, which Tollgate refuses, and to watch its own configuration files.
    superagent: {},
    'js-yaml': {},
    chokidar: {},
    // `fast-uri` has the functions of uri-js, but no regular expressions that take 0.1 s to compile.
    'uri-js': createRequire(load.resolve('ajv'))('fast-uri') as unknown,
  };
  for (const [name, exports] of Object.entries(packages)) replaceModule(load, name, exports);
  return () => {
    for (const name of Object.keys(packages)) delete load.cache[load.resolve(name)];
  };
}

/** Replaces a module by a stand-in that loads it when one of its functions is first called. */
function loadLate(load: NodeJS.Require, name: string): void {
  let original: unknown;
  const loaded = () => {
    if (original === undefined) delete load.cache[load.resolve(name)];
    original ??= load(name);
    return original;
  };
  replaceModule(load, name, lateFunction(loaded));
}

/** Returns a stand-in that loads the real function only when the stand-in is called. Members of the stand-in are stand-ins, too. */
function lateFunction(read: () => unknown): () => unknown {
  return new Proxy(() => undefined, {
    get: (_, member) => lateFunction(() => (read() as Record<PropertyKey, unknown>)[member]),
    apply: (_, owner, given) => Reflect.apply(read() as () => unknown, owner, given),
  });
}

/**
 * Replaces the loading of the configuration. Express Gateway would read the files itself, insert the environment before parsing,
 * and require a folder `models/` beside them.
 */
function replaceConfiguration(load: NodeJS.Require, gatewaySettings: unknown, system: SystemSettings): void {
  const Config = load('express-gateway/lib/config/config') as { prototype: Record<string, unknown> };
  Config.prototype['loadModels'] = function loadModels(this: EgConfig) {
    const schemas = load('express-gateway/lib/schemas') as {
      register(type: string, name: string, schema: unknown): void;
    };
    for (const name of ['users', 'credentials', 'applications']) {
      this.models[name] = load(`express-gateway/lib/config/models/${name}.json`);
      schemas.register('model', name, this.models[name]);
    }
  };
  Config.prototype['loadConfig'] = function loadConfig(this: EgConfig, type: 'system' | 'gateway') {
    if (type === 'gateway') this.gatewayConfig = checkedByExpressGateway(this, type, gatewaySettings);
    else this.systemConfig = checkedByExpressGateway(this, type, system);
  };
}

/** Checks settings with Express Gateway's own schema, which also adds the defaults that its own parts rely on. */
function checkedByExpressGateway(config: EgConfig, type: 'system' | 'gateway', settings: unknown): unknown {
  const value: unknown = structuredClone(settings);
  const { isValid, error } = config.configTypes[type].validator(value);
  if (!isValid) throw new Error(`Express Gateway rejects ${type}.config: ${error}`);
  return value;
}

/**
 * Returns the content of gateway.config.yml, with the checked settings and defaults of every action. Omits TLS, because Tollgate itself
 * adds TLS to the servers.
 */
function withCheckedSettings({ gateway, pipelines }: Configuration): unknown {
  const checked = pipelines.map(({ name, endpoints, steps }) => [
    name,
    {
      apiEndpoints: endpoints.map((endpoint) => endpoint.name),
      policies: steps.map(({ policy, settings }) => ({
        [policy.name]: [{ action: { ...(settings as object), [PIPELINE]: name } }],
      })),
    },
  ]);
  // Express Gateway uses the first endpoint that matches, so endpoints for any host must come last.
  const hostFirst = Object.entries(gateway.apiEndpoints).sort(([, one], [, two]) => rank(one.host) - rank(two.host));
  return {
    ...gateway,
    https: undefined,
    apiEndpoints: Object.fromEntries(hostFirst) as unknown,
    pipelines: Object.fromEntries(checked) as unknown,
  };
}

function rank(host: string | undefined): number {
  return host === undefined || host === '*' ? 1 : 0;
}

/** Mounts our routes before the pipelines. Plugins can reach the app only while Express Gateway loads them. */
function mountRoutes(load: NodeJS.Require, served: Served, entrance: Entrance): void {
  const plugins = load('express-gateway/lib/plugins') as { load: (context: unknown) => { gatewayRoutes: unknown[] } };
  const original = plugins.load;
  plugins.load = (context) => {
    const loaded = original(context);
    loaded.gatewayRoutes.push((app: ExpressApp) => {
      app.use((request: RequestWithCall, response, next) => {
        const place = served.answerUnlessCall(request, response);
        if (place === undefined) return;
        request[CALL] = place.open(request, response);
        if (entrance.pipelines === undefined) next();
        else entrance.pipelines(request, response, next);
      });
    });
    return loaded;
  };
}

function assertMounted(pipelines: readonly PipelineSettings[], manifests: readonly Manifest[]): void {
  for (const { name } of manifests) {
    if (!initialised.has(name))
      throw new Error(`Express Gateway could not load the plugin "${name}"; LOG_LEVEL=debug shows why`);
  }
  for (const { name, steps } of pipelines) {
    for (const { policy } of steps) {
      if (!mounted.has(policy.name))
        throw new Error(`Express Gateway did not mount "${policy.name}" of pipeline "${name}"`);
    }
  }
}

function takeOver(server: Server, { answerUnlessCall, fastLane }: Served): void {
  if (!fastLane) return;
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    answerUnlessCall(request, response)?.serve(request, response);
  });
}

function takeOverAdmin(server: Server, served: Served): void {
  const [express] = server.listeners('request') as Middleware[];
  if (express === undefined) throw new Error('the admin listener of Express Gateway has no request handler');
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) =>
    served.admin(request, response, express),
  );
}
