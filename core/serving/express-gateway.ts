/**
 * The only file that knows Express Gateway's insides. It gives Express Gateway our configuration (already read and checked),
 * our policies and our routes, and takes its two servers.
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

/** Manifests whose `init` Express Gateway has run: it swallows the errors of those it could not load. */
const initialised = new Set<string>();

initialiseWith(({ name, tollgate: { policies } }, context) => {
  initialised.add(name);
  for (const policy of policies) context.registerPolicy(toExpressGateway(policy));
});

const CALL = Symbol('call');
type RequestWithCall = IncomingMessage & { [CALL]?: Call };

/** Set before Express Gateway runs its policy factories. */
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

/** Policies that Express Gateway has really put into a pipeline. */
const mounted = new Set<string>();

/** What Express Gateway does not tell: in which pipeline an action stands. */
const PIPELINE = '$pipeline';

/** Express Gateway adds a function to every action. */
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
  /** Answers everything on the public listener that is no call (our own API, 404, 405); for a call returns how it is served. */
  readonly answerUnlessCall: (request: IncomingMessage, response: ServerResponse) => ServedCall | undefined;
  /** Calls are served without Express. */
  readonly fastLane: boolean;
  /** Everything on the admin listener goes through here first, and on to Express Gateway's own admin API. */
  readonly admin: (request: IncomingMessage, response: ServerResponse, expressGateway: Middleware) => void;
}

export interface ExpressGateway {
  readonly http: Server;
  readonly admin: Server;
  /** Lets clients in at the admin listener. */
  openAdmin(): Promise<void>;
  /** Builds the pipelines of another configuration; what it returns lets new calls in through them. */
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

/**
 * Starts Express Gateway on a configuration. Rejects when a pipeline or plugin could not be mounted, which it would only log.
 */
export async function startExpressGateway(
  gateway: PipelineGateway,
  system: SystemSettings,
  manifests: readonly Manifest[],
  served: Served,
  log: Logger,
): Promise<ExpressGateway> {
  running = gateway;
  // It reroutes all of its own requests when these are set; upstream proxies are a setting of ours.
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'http_proxy', 'https_proxy']) delete process.env[name];
  process.env['EG_DISABLE_CONFIG_WATCH'] = '1';
  process.env['EG_CONFIG_DIR'] ??= __dirname;
  const load = createRequire(__filename);
  replaceLogger(load, log);
  replaceConfiguration(load, withCheckedSettings(gateway.configuration), system);
  // It makes an id per request that nobody reads, slowly.
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
  // `run` rejects when a pipeline cannot be mounted; it resolves only when the admin listener is open, too.
  await Promise.race([run, isOpen]);
  const [{ httpServer: http }] = await isOpen;
  const { admin, openAdmin } = await held;
  assertMounted(gateway.configuration.pipelines, manifests);
  takeOver(http, served);
  takeOverAdmin(admin, served);
  return { http, admin, openAdmin, prepare: (next) => preparePipelines(load, next, served, entrance) };
}

/**
 * Times are looked at every second, not every thirty: who is slow is closed when it is due. That a Host header is there is
 * checked by us, so that its absence is told in our envelope.
 */
const SERVER_OPTIONS = { connectionsCheckingInterval: 1_000, requireHostHeader: false } as const;

/** It opens its servers with a listener alone, and these options can only be given then. */
function openServersWith(load: NodeJS.Require, options: ServerOptions): void {
  const http = load('node:http') as { createServer(...given: unknown[]): Server };
  const { createServer } = http;
  http.createServer = (...given) => createServer(...(given.length === 1 ? [options, ...given] : given));
}

/** Keeps its admin server from listening when it is made: of several workers only one opens it. */
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

/** Where calls go that Express serves: its own pipelines of the start, until a reload has put others in their place. */
interface Entrance {
  pipelines: Middleware | undefined;
}

/**
 * Its own hot reload would run every `init` again, append routes to the app, and end the process or keep silent when something
 * is wrong. Only the part of it that builds the pipelines is used.
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
    // What its admin API shows.
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
  // Its policies are put into the router by promises it does not wait for.
  await new Promise((resolve) => setImmediate(resolve));
  return router;
}

/** Its own log lines, without the winston it brings: they go where ours go, information as detail. */
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

/** It would read the files itself, put the environment in before parsing, and ask for `models/` beside them. */
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

/** Its own check also fills in the defaults that its own parts rely on. */
function checkedByExpressGateway(config: EgConfig, type: 'system' | 'gateway', settings: unknown): unknown {
  const value: unknown = structuredClone(settings);
  const { isValid, error } = config.configTypes[type].validator(value);
  if (!isValid) throw new Error(`Express Gateway rejects ${type}.config: ${error}`);
  return value;
}

/** The file's content, but every action as it was checked, with its defaults. TLS is put over its servers by us. */
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
  // "Any host" declared first would win over a specific one.
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

/** Our routes stand before the pipelines; plugins get at the app in no other way than at load. */
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
  if (express === undefined) throw new Error('the admin listener has no handler');
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) =>
    served.admin(request, response, express),
  );
}
