import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Client, Pool } from 'undici';
import { parse, stringify } from 'yaml';
import { keepDataFolder, newDataFolder } from './data-folder';
import { builtServer, endsWithRun } from './shared';
import { enterStores, leaveStores, type Stores } from './stores';
import { until } from './until';

const PROJECT = resolve(__dirname, '../..');

/** The time for a start, which needs seconds of CPU on a busy machine. */
const READY_WITHIN_MS = 180_000;

/** One model at one upstream of a test's configuration. */
interface TestModel {
  readonly aliases?: readonly string[];
  readonly context?: number;
  readonly maxOutput?: number;
  readonly estimatedMaxTokens?: number;
  readonly price?: Record<string, unknown>;
  readonly toolUses?: Record<string, number>;
  readonly translate?: string;
  readonly reasoning?: string;
  readonly mayAnswerWith?: Record<string, readonly string[]>;
  readonly facts?: Readonly<Record<string, unknown>>;
  readonly tokenizerFactor?: number;
  readonly imageTokens?: number | Readonly<Record<string, number>>;
  readonly toolOverheadTokens?: number;
}

/** An upstream of a test's configuration. Omitted members have defaults for tests. */
export interface TestEndpoint {
  readonly url: string;
  readonly adapter?: string | readonly string[];
  readonly tier?: string;
  readonly weight?: number;
  readonly maxConcurrent?: number;
  readonly timeouts?: Record<string, string>;
  readonly streamUsage?: boolean;
  readonly webSocket?: boolean;
  readonly traceContext?: boolean;
  readonly translate?: string;
  readonly versions?: readonly string[];
  readonly stopsOnCancel?: boolean;
  readonly isolateCaches?: boolean;
  readonly ignoreUsage?: readonly string[];
  readonly unpricedTools?: string;
  readonly allowPrivate?: boolean;
  readonly credential?: Readonly<Record<string, unknown>>;
  readonly credentials?: readonly Readonly<Record<string, unknown>>[];
  readonly adapterSettings?: Readonly<Record<string, unknown>>;
  readonly reporting?: Readonly<Record<string, unknown>>;
  readonly facts?: Readonly<Record<string, unknown>>;
  readonly models?: Readonly<Record<string, TestModel>>;
}

/** A parsed gateway.config.yml that a test may change. */
// biome-ignore lint/suspicious/noExplicitAny: tests change, and break, any part of it
export type Configured = Record<string, any>;

export interface GatewayOptions {
  /** The stores of another gateway, or `real` for tests that need Redis and Postgres. Default: new ones of the kind that `STORES` names. */
  readonly stores?: Stores | 'real';
  readonly upstreams: Readonly<Record<string, TestEndpoint>>;
  /** Changes the parsed gateway.config.yml before it is written, or returns its text. */
  readonly configure?: (config: Configured) => string | void;
  /** Members to add to system.config.yml. */
  readonly system?: Readonly<Record<string, unknown>>;
  /** Settings of plugins in system.config.yml. */
  readonly plugins?: Readonly<Record<string, object>>;
  readonly env?: NodeJS.ProcessEnv;
  /** The authority of the listeners' certificates, if they have TLS. */
  readonly ca?: string;
  /** The data folder of an earlier start on real stores. Default: a new one. Embedded stores have their own. */
  readonly dataFolder?: string;
  /** Whether the story needs a process of its own, because it ends, counts or measures it. Default: only with stores or a data folder. */
  readonly own?: boolean;
}

/** Tests ask for records and sandboxes until they are there. */
const AS_OFTEN_AS_WANTED = { requestsPerMinute: 1_000_000 };

/** The credential of every test upstream. */
export const UPSTREAM_CREDENTIAL = 'the-platforms-own-credential';

export const MODEL = 'acme-large';

/** Prices in USD per million tokens: 3 and 15, so that 10 in and 5 out cost 0.00010500. */
export const PRICE = { input: 3, output: 15, cacheWrite: 3.75, cacheWrite1h: 6, cacheRead: 0.3 };

/** The default model. Bodies of tests are short, but their upstreams report a thousand tokens of input, so that holds must cover these. */
const USUAL_MODEL = {
  context: 200_000,
  maxOutput: 8_192,
  estimatedMaxTokens: 1_024,
  tokenizerFactor: 60,
  price: PRICE,
} as const;

export interface Answered {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly text: string;
  /** The body parsed as JSON; undefined if it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look at any shape
  readonly json: any;
}

export interface TestGateway {
  readonly url: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  /** The stores, for a later start with the same money and records. */
  readonly stores: Stores;
  readonly dataFolder: string;
  /** The folder of its two YAML files. */
  readonly configFolder: string;
  /** Changes gateway.config.yml in place. A text, or a returned text, is written unchanged. */
  changeConfiguration(change: string | ((config: Configured) => string | void)): Promise<void>;
  readonly pid: number;
  readonly process: ChildProcess;
  /** Returns its whole output so far. */
  output(): string;
  call(path: string, options?: RequestOptions): Promise<Answered>;
  admin(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answered>;
  /** Makes an account with this much money and a key. */
  newCustomer(usd: string, key?: Record<string, unknown>): Promise<{ accountId: string; keyId: string; key: string }>;
  balance(
    key: string,
  ): Promise<{ balanceUsd: string; heldUsd: string; availableUsd: string; key: Record<string, string | null> }>;
  /** Waits for the usage record of a request. */
  record(key: string, requestId: string): Promise<Record<string, unknown>>;
  /** Resolves with the exit code at its end. */
  readonly ended: Promise<number | null>;
  /** Sends SIGTERM and resolves with the exit code, or null if the process is left for other stories. */
  stop(): Promise<number | null>;
  kill(): Promise<void>;
}

export interface RequestOptions {
  readonly method?: string;
  readonly key?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

/** A running server, its stores and its folder of configuration. */
interface Server {
  readonly child: ChildProcess;
  readonly ready: { readonly public: string; readonly admin: string };
  readonly ended: Promise<number | null>;
  readonly stores: Stores;
  readonly dataFolder: string;
  readonly folder: string;
  output(): string;
}

const ADMIN_TOKEN = 'token-of-the-operator-in-tests';

/**
 * Starts the real server with the project's gateway.config.yml, except its upstreams. Where an earlier story of this test process has left a server
 * with the same settings, that one takes the story's gateway.config.yml instead: accounts of other stories are in its stores.
 */
export async function startGateway(options: GatewayOptions): Promise<TestGateway> {
  // A story that starts again on the stores of its first gateway means that one to have ended.
  const before = idle.findIndex(({ server }) => server.stores === options.stores);
  if (before !== -1) for (const { server } of idle.splice(before, 1)) await end(server, 'SIGTERM');
  if (needsOwn(options)) return gatewayOf(await launch(options), options, 0);
  const settings = JSON.stringify([options.system, options.plugins, options.env]);
  const taken = await takeIdle(settings, options);
  const server = taken ?? (await launch(options));
  return gatewayOf(server, options, taken?.output().length ?? 0, () => leaveIdle(settings, server));
}

function needsOwn({ own, stores, dataFolder, ca }: GatewayOptions): boolean {
  return own === true || stores !== undefined || dataFolder !== undefined || ca !== undefined;
}

/** How many servers wait for a next story. Each has a Redis and a database, which are not emptied while it runs. */
const MAX_IDLE = 2;

const idle: { readonly settings: string; readonly server: Server }[] = [];

/** Gives a waiting server the configuration of a story. Ends it and returns undefined if a part of the configuration needs a restart. */
async function takeIdle(settings: string, options: GatewayOptions): Promise<Server | undefined> {
  const index = idle.findIndex((each) => each.settings === settings && isRunning(each.server.child));
  const [taken] = index === -1 ? [] : idle.splice(index, 1);
  if (taken === undefined) return undefined;
  const { server } = taken;
  const { gateway } = await configurationOf(options);
  if (await reconfigure(server, gateway)) return server;
  await end(server, 'SIGTERM');
  return undefined;
}

/** Keeps a server for a next story, without this one's upstreams. */
async function leaveIdle(settings: string, server: Server): Promise<void> {
  idle.push({ settings, server });
  keepDataFolder(server.dataFolder);
  await endsWithRun(server.child.pid ?? 0, server.dataFolder);
  if (idle.length > MAX_IDLE) await end((idle.shift() as (typeof idle)[number]).server, 'SIGTERM');
}

/** Replaces gateway.config.yml and reloads it. Returns false if that was not enough. */
async function reconfigure({ ready, folder }: Server, text: string): Promise<boolean> {
  await replaceFile(join(folder, 'gateway.config.yml'), text);
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` };
  const operate = (path: string) => fetch(`${ready.admin}/admin/v1/${path}`, { method: 'POST', headers });
  const answer = await operate('config/reload');
  if (!answer.ok) return false;
  const { restartNeeded } = (await answer.json()) as { restartNeeded: readonly string[] };
  if (restartNeeded.length > 0) return false;
  // What was observed of another story's upstream of the same name says nothing of this one.
  for (const name of Object.keys((parse(text) as Configured)['serviceEndpoints']))
    await operate(`upstreams/${encodeURIComponent(name)}/enable`);
  return true;
}

async function launch(options: GatewayOptions): Promise<Server> {
  const folder = await writeConfiguration(options);
  const stores = await enterStores(options.stores);
  const dataFolder = await dataFolderOf(options, stores);
  const child = await startServer({
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    NODE_ENV: 'production',
    FAST_LANE: process.env['FAST_LANE'],
    TOLLGATE_CONFIG_DIR: folder,
    DATA_DIR: dataFolder,
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    ADMIN_TOKEN,
    UPSTREAM_CREDENTIAL,
    LOG_LEVEL: 'info',
    WATCH_CONFIG: 'false',
    ...addressesOf(stores),
    ...options.env,
  });
  let output = '';
  const keep = (chunk: Buffer) => {
    output += chunk.toString();
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const ended = new Promise<number | null>((done) =>
    child.once('exit', (code) => {
      leaveStores(stores);
      done(code);
    }),
  );
  const endedEarly = ended.then((code): never => {
    throw new Error(`the gateway ended with ${code}: ${output}`);
  });
  const ready = await Promise.race([
    until('the gateway is ready', () => readyLine(output), READY_WITHIN_MS),
    endedEarly,
  ]).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  endedEarly.catch(() => undefined);
  return { child, ready, ended, stores, dataFolder, folder, output: () => output };
}

async function end({ child, ended, folder }: Server, signal: NodeJS.Signals): Promise<number | null> {
  if (isRunning(child)) child.kill(signal);
  const code = await ended;
  await rm(folder, { recursive: true, force: true });
  return code;
}

/** @param begin where the story's output begins @param leave keeps the server for others if its story did not end it */
function gatewayOf(server: Server, { ca }: GatewayOptions, begin: number, leave?: () => Promise<void>): TestGateway {
  const { child, ended, folder } = server;
  const { public: url, admin: adminUrl } = server.ready;
  const connect = ca === undefined ? {} : { ca };
  const pool = new Pool(url, { connections: 300, headersTimeout: 60_000, bodyTimeout: 60_000, connect });
  const adminPool = new Pool(adminUrl, { connections: 4, connect });
  const call = (path: string, request: RequestOptions = {}) => send(pool, path, request);
  const admin = (method: string, path: string, body?: unknown, headers = {}) =>
    send(adminPool, path, { method, body, headers: { authorization: `Bearer ${ADMIN_TOKEN}`, ...headers } });
  const close = async () => {
    await pool.destroy();
    await adminPool.destroy();
  };
  const changeConfiguration: TestGateway['changeConfiguration'] = async (change) => {
    const path = join(folder, 'gateway.config.yml');
    if (typeof change === 'string') return replaceFile(path, change);
    const config = parse(await readFile(path, 'utf8')) as Configured;
    const text = change(config) ?? stringify(config);
    await replaceFile(path, text);
  };
  return {
    url,
    adminUrl,
    adminToken: ADMIN_TOKEN,
    stores: server.stores,
    dataFolder: server.dataFolder,
    configFolder: folder,
    changeConfiguration,
    pid: child.pid ?? 0,
    process: child,
    ended,
    output: () => server.output().slice(begin),
    call,
    admin,
    newCustomer: async (usd, keyOptions = {}) => {
      const account = expectStatus(201, await admin('POST', '/admin/v1/accounts', { name: 'customer' }));
      const accountId = String(account['id']);
      const path = `/admin/v1/accounts/${accountId}`;
      if (usd !== '0') {
        const credit = { amountUsd: usd, idempotencyKey: 'first' };
        const answer = await retried('the ledger takes a credit', () => admin('POST', `${path}/credits`, credit));
        // A credit that was accepted without an answer already exists.
        if (answer.status !== 200) expectStatus(201, answer);
      }
      const key = expectStatus(
        201,
        await retried('the ledger takes a key', () => admin('POST', `${path}/keys`, { name: 'key', ...keyOptions })),
      );
      return { accountId, keyId: String(key['id']), key: String(key['key']) };
    },
    balance: async (key) =>
      (await retried('the ledger reports a balance', () => call('/v1/balance', { method: 'GET', key }))).json,
    record: (key, requestId) =>
      until(`the record of ${requestId}`, async () => {
        const answer = await call(`/v1/usage/${requestId}`, { method: 'GET', key });
        return answer.status === 200 ? answer.json : undefined;
      }),
    stop: async () => {
      await close();
      if (leave === undefined || !isRunning(child)) return end(server, 'SIGTERM');
      await leave();
      return null;
    },
    kill: async () => {
      await end(server, 'SIGKILL');
      await close();
    },
  };
}

/** Repeats a request that got 503, because Redis may be late on a busy machine and the gateway then answers with Retry-After. */
function retried(what: string, request: () => Promise<Answered>): Promise<Answered> {
  return until(what, async () => {
    const answer = await request();
    return answer.json?.error?.code === 'LEDGER_UNAVAILABLE' ? undefined : answer;
  });
}

/** Returns whether a process is still running. A repeated test may have killed its gateway. */
export function isRunning({ exitCode, signalCode }: ChildProcess): boolean {
  return exitCode === null && signalCode === null;
}

/** Starts the server and waits for its end, for starts that must fail. */
export async function failToStart(options: GatewayOptions): Promise<{ code: number | null; output: string }> {
  const folder = await writeConfiguration(options);
  const stores = await enterStores(options.stores);
  const child = await startServer({
    PATH: process.env['PATH'],
    TOLLGATE_CONFIG_DIR: folder,
    DATA_DIR: await dataFolderOf(options, stores),
    PORT: '0',
    ADMIN_PORT: '0',
    UPSTREAM_CREDENTIAL,
    ...addressesOf(stores),
    ...options.env,
  });
  let output = '';
  child.stdout?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr?.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await new Promise<number | null>((done) => {
    const patience = setTimeout(() => child.kill('SIGKILL'), 50_000);
    child.once('close', (exitCode) => {
      clearTimeout(patience);
      done(exitCode);
    });
  });
  leaveStores(stores);
  await rm(folder, { recursive: true, force: true });
  return { code, output };
}

async function startServer(env: NodeJS.ProcessEnv): Promise<ChildProcess> {
  return spawn(process.execPath, [await builtServer()], { env, stdio: ['ignore', 'pipe', 'pipe'] });
}

function readyLine(output: string): { public: string; admin: string } | undefined {
  const line = output.split('\n').find((each) => each.includes('"msg":"ready"'));
  return line === undefined ? undefined : (JSON.parse(line) as { public: string; admin: string });
}

function dataFolderOf({ dataFolder }: GatewayOptions, stores: Stores): string | Promise<string> {
  return 'dataFolder' in stores ? stores.dataFolder : (dataFolder ?? newDataFolder());
}

function addressesOf(stores: Stores): NodeJS.ProcessEnv {
  return 'dataFolder' in stores ? {} : { REDIS_URL: stores.redisUrl, DATABASE_URL: stores.databaseUrl };
}

interface Shipped {
  readonly plugins: Readonly<Record<string, object>>;
}

/** Returns the texts of the two files of configuration. */
async function configurationOf({ upstreams, configure, system, plugins = {} }: GatewayOptions) {
  const config = parse(await readFile(join(PROJECT, 'gateway.config.yml'), 'utf8')) as Configured;
  config['serviceEndpoints'] = Object.fromEntries(
    Object.entries(upstreams).map(([name, each]) => [name, toEndpoint(each)]),
  );
  const gateway = configure?.(config) ?? stringify(config, { aliasDuplicateObjects: false });
  const shipped = parse(await readFile(join(PROJECT, 'system.config.yml'), 'utf8')) as Shipped;
  for (const [name, settings] of Object.entries(plugins)) Object.assign(shipped.plugins[name] ?? {}, settings);
  return { gateway, system: stringify({ ...shipped, keys: AS_OFTEN_AS_WANTED, ...system }) };
}

async function writeConfiguration(options: GatewayOptions): Promise<string> {
  const { gateway, system } = await configurationOf(options);
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-config-'));
  await writeFile(join(folder, 'gateway.config.yml'), gateway);
  await writeFile(join(folder, 'system.config.yml'), system);
  return folder;
}

/** Replaces a file atomically, as editors and deployments do. */
async function replaceFile(path: string, text: string): Promise<void> {
  await writeFile(`${path}.new`, text);
  await rename(`${path}.new`, path);
}

function toEndpoint({ models, ...endpoint }: TestEndpoint): unknown {
  return {
    adapter: ['messages', 'chat', 'responses'],
    ...(endpoint.credentials === undefined && { credential: { env: 'UPSTREAM_CREDENTIAL' } }),
    tier: 'standard',
    allowPrivate: true,
    timeouts: { connect: '2s', headers: '10s', idle: '10s' },
    models: Object.fromEntries(
      Object.entries(models ?? { [MODEL]: {} }).map(([name, model]) => [name, { ...USUAL_MODEL, ...model }]),
    ),
    ...endpoint,
  };
}

async function send(
  client: Pool | Client,
  path: string,
  { method = 'POST', key, headers = {}, body }: RequestOptions,
): Promise<Answered> {
  const response = await client.request({
    method: method as 'POST',
    path,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'x-api-key': key }),
      ...headers,
    },
    body: body === undefined ? null : typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  });
  const text = await response.body.text();
  return {
    status: response.statusCode,
    headers: response.headers as Record<string, string>,
    text,
    json: parseJson(text),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function expectStatus(status: number, answer: Answered): Record<string, unknown> {
  if (answer.status !== status) throw new Error(`expected ${status}, not ${answer.status}: ${answer.text}`);
  return answer.json as Record<string, unknown>;
}
