import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildCatalog, type Catalog, CatalogProblem, type ModelEntry, type Upstream } from './catalog';
import {
  GATEWAY_SCHEMA,
  type GatewaySettings,
  type ModelSettings,
  type ServiceEndpointSettings,
  SYSTEM_SCHEMA,
  type SystemSettings,
} from './configuration-schema';
import { pathText } from './http';
import { nearestNames } from './model-names';
import { parseUsd } from './money';
import type { Section } from './plugin';
import type { Policy } from './policy';
import type { Price } from './price';
import { type Check, compileCheck, type Problem, parseDuration } from './settings';
import { adapterNames, findAdapter, type UpstreamAdapter } from './upstream';
import { ConfigurationError, type ConfigurationProblem, readYamlFile, type YamlFile } from './yaml-file';

export interface PipelineSettings {
  readonly name: string;
  readonly endpoints: readonly EndpointSettings[];
  readonly steps: readonly StepSettings[];
}

/** One policy of a pipeline, in order. */
export interface StepSettings {
  readonly policy: Policy;
  /** The action after the policy's schema has let it pass and filled its defaults in. */
  readonly settings: unknown;
}

export interface EndpointSettings {
  readonly name: string;
  readonly host: string | undefined;
  readonly paths: readonly string[];
  readonly methods: readonly string[] | undefined;
}

export interface Configuration {
  /** Short hash of gateway.config.yml as it stands in the file. */
  readonly revision: string;
  readonly gateway: GatewaySettings;
  readonly pipelines: readonly PipelineSettings[];
  readonly catalog: Catalog;
  /** What stands under the keys that plugins own, by key. */
  readonly sections: ReadonlyMap<string, unknown>;
}

/** What is loaded beside the configuration, and gives its words their meaning. */
export interface Loaded {
  readonly policies: readonly Policy[];
  /** By key. */
  readonly sections: ReadonlyMap<string, Section>;
}

const checkSystem = compileCheck<SystemSettings>(SYSTEM_SCHEMA);

/** system.config.yml: which plugins are loaded, with which settings. @throws ConfigurationError */
export function loadSystemSettings(folder: string, env: NodeJS.ProcessEnv): SystemSettings {
  const file = readYamlFile(join(folder, 'system.config.yml'), env);
  return checkFile(file, checkSystem);
}

/**
 * Reads gateway.config.yml of a folder, as often as it is asked, and checks it as a whole: schema, policies and their order,
 * endpoints, upstreams, adapters, models, prices, the plugins' sections. Adapters must have been registered.
 * @throws ConfigurationError with every problem found
 */
export type ReadConfiguration = (folder: string, env: NodeJS.ProcessEnv) => Configuration;

export function configurationReader({ policies, sections }: Loaded): ReadConfiguration {
  const check = compileCheck<GatewaySettings>(gatewaySchema(sections));
  return (folder, env) => {
    const file = readYamlFile(join(folder, 'gateway.config.yml'), env);
    const gateway = checkFile(file, check);
    const problems: LocatedProblem[] = [];
    const pipelines = readPipelines(gateway, policies, problems);
    const upstreams = readUpstreams(gateway, folder, env, problems);
    const catalog = readCatalog(upstreams, problems);
    if (catalog === undefined) throw locate(file, problems);
    const written = readSections(gateway, sections, catalog, problems);
    if (problems.length > 0) throw locate(file, problems);
    const revision = createHash('sha256').update(file.text).digest('hex').slice(0, 12);
    return { revision, gateway, pipelines, catalog, sections: written };
  };
}

/** A plugin's key is known at the top level like our own. */
function gatewaySchema(sections: Loaded['sections']): object {
  const own = [...sections].map(([name, { schema }]) => [name, schema] as const);
  return { ...GATEWAY_SCHEMA, properties: { ...GATEWAY_SCHEMA.properties, ...Object.fromEntries(own) } };
}

function readSections(
  gateway: GatewaySettings & Readonly<Record<string, unknown>>,
  sections: Loaded['sections'],
  catalog: Catalog,
  problems: LocatedProblem[],
): Configuration['sections'] {
  const written = [...sections].filter(([name]) => gateway[name] !== undefined);
  for (const [name, { check }] of written) {
    const found = check?.(gateway[name] as never, catalog) ?? [];
    problems.push(...found.map(({ path, message }) => ({ path: [name, ...path], message })));
  }
  return new Map(written.map(([name]) => [name, gateway[name]]));
}

type LocatedProblem = Pick<Problem, 'path' | 'message'>;

function checkFile<T>(file: YamlFile, check: Check<T>): T {
  const checked = check(file.value ?? {});
  if ('value' in checked) return checked.value;
  throw locate(file, checked.problems.map(withHint));
}

function locate(file: YamlFile, problems: readonly LocatedProblem[]): ConfigurationError {
  return new ConfigurationError(
    problems.map(({ path, message }): ConfigurationProblem => {
      const where = pathText(path);
      return { ...file.locate(path), message: where === '' ? message : `${where}: ${message}` };
    }),
  );
}

function withHint(problem: Problem): LocatedProblem {
  return { path: problem.path, message: problem.message + hint(problem.unknown, problem.known ?? []) };
}

/** The nearest known name, or all of them when none is near. */
function hint(unknown: string | undefined, known: readonly string[]): string {
  if (unknown === undefined || known.length === 0) return '';
  const [nearest] = nearestNames(unknown, known);
  return nearest === undefined ? `; known: ${known.join(', ')}` : `; did you mean "${nearest}"?`;
}

function readPipelines(
  gateway: GatewaySettings,
  policies: readonly Policy[],
  problems: LocatedProblem[],
): PipelineSettings[] {
  const byName = new Map(policies.map((policy) => [policy.name, policy]));
  for (const [index, name] of gateway.policies.entries()) {
    if (!byName.has(name)) {
      problems.push({
        path: ['policies', index],
        message: `there is no policy "${name}"${hint(name, [...byName.keys()])}`,
      });
    }
  }
  const takenBy = new Map<string, string>();
  const mountedAt = new Map<string, string>();
  return Object.entries(gateway.pipelines).map(([name, pipeline]) => {
    const endpoints = pipeline.apiEndpoints.flatMap((endpoint, index) => {
      const path = ['pipelines', name, 'apiEndpoints', index];
      const settings = gateway.apiEndpoints[endpoint];
      if (settings === undefined) {
        problems.push({
          path,
          message: `there is no endpoint "${endpoint}"${hint(endpoint, Object.keys(gateway.apiEndpoints))}`,
        });
        return [];
      }
      const other = takenBy.get(endpoint);
      if (other !== undefined) {
        problems.push({ path, message: `endpoint "${endpoint}" already belongs to pipeline "${other}"` });
        return [];
      }
      takenBy.set(endpoint, name);
      checkMounts(endpoint, settings, mountedAt, problems);
      return [{ name: endpoint, host: settings.host, paths: settings.paths, methods: settings.methods }];
    });
    return { name, endpoints, steps: readSteps(name, pipeline, gateway.policies, byName, problems) };
  });
}

function checkMounts(
  endpoint: string,
  settings: GatewaySettings['apiEndpoints'][string],
  mountedAt: Map<string, string>,
  problems: LocatedProblem[],
): void {
  for (const [index, path] of settings.paths.entries()) {
    const mount = `${settings.host?.toLowerCase() ?? '*'} ${path}`;
    const other = mountedAt.get(mount);
    if (other !== undefined) {
      problems.push({
        path: ['apiEndpoints', endpoint, 'paths', index],
        message: `"${path}" is already served by endpoint "${other}"`,
      });
    }
    mountedAt.set(mount, endpoint);
  }
}

function readSteps(
  pipeline: string,
  settings: GatewaySettings['pipelines'][string],
  declared: readonly string[],
  byName: ReadonlyMap<string, Policy>,
  problems: LocatedProblem[],
): PipelineSettings['steps'] {
  const there = new Set<string>();
  // What an unknown policy would have provided is not known, so nothing after it is called missing.
  let isOrderKnown = true;
  const steps: StepSettings[] = [];
  for (const [index, entry] of settings.policies.entries()) {
    const path = ['pipelines', pipeline, 'policies', index];
    const [[name, uses] = ['', null]] = Object.entries(entry);
    const policy = byName.get(name);
    if (policy === undefined) {
      problems.push({ path, message: `there is no policy "${name}"${hint(name, [...byName.keys()])}` });
      isOrderKnown = false;
      continue;
    }
    if (!declared.includes(name)) problems.push({ path, message: `"${name}" must also stand under policies:` });
    for (const field of policy.needs.filter((each) => isOrderKnown && !there.has(each))) {
      const provider = [...byName.values()].find((each) => each.provides.includes(field));
      const remedy = provider === undefined ? 'no policy provides it' : `put "${provider.name}" before it`;
      problems.push({
        path,
        message: `"${name}" in pipeline "${pipeline}" needs \`${field}\` of the call, which nothing before it provides: ${remedy}`,
      });
    }
    for (const field of policy.provides) there.add(field);
    const checked = checkOf(policy)(uses?.[0]?.action ?? {});
    if ('problems' in checked) {
      for (const problem of checked.problems) {
        problems.push({ ...withHint(problem), path: [...path, name, 0, 'action', ...problem.path] });
      }
      continue;
    }
    steps.push({ policy, settings: checked.value });
  }
  const last = steps.at(-1)?.policy;
  if (last !== undefined && last.answers !== true && steps.length === settings.policies.length) {
    const path = ['pipelines', pipeline, 'policies', settings.policies.length - 1];
    problems.push({
      path,
      message: `pipeline "${pipeline}" ends without an answer: its last policy must be one that answers, such as "sse-relay"`,
    });
  }
  return steps;
}

const checks = new WeakMap<Policy, Check<unknown>>();

function checkOf(policy: Policy): Check<unknown> {
  const known = checks.get(policy);
  if (known !== undefined) return known;
  const check = compileCheck<unknown>(policy.schema);
  checks.set(policy, check);
  return check;
}

function readUpstreams(
  gateway: GatewaySettings,
  folder: string,
  env: NodeJS.ProcessEnv,
  problems: LocatedProblem[],
): Upstream[] {
  return Object.entries(gateway.serviceEndpoints).flatMap(([name, settings]) => {
    const path = ['serviceEndpoints', name];
    if (!URL.canParse(settings.url)) {
      problems.push({ path: [...path, 'url'], message: 'is not a valid address' });
      return [];
    }
    const adapters = readAdapters(path, settings, problems);
    const credential = readCredential(path, settings.credential, folder, env, problems);
    const upstream: Upstream = {
      name,
      url: new URL(settings.url),
      adapters,
      adapterSettings: settings.adapterSettings ?? {},
      credential: credential.value,
      disabled: credential.value === undefined ? credential.reason : undefined,
      tier: settings.tier,
      weight: settings.weight,
      allowPrivate: settings.allowPrivate,
      timeouts: readTimeouts(path, settings, problems),
      prefill: settings.prefill,
      streamUsage: settings.streamUsage,
      models: Object.entries(settings.models).map(([model, each]) =>
        readModel([...path, 'models', model], model, each, problems),
      ),
    };
    return [upstream];
  });
}

function readAdapters(
  path: readonly string[],
  settings: ServiceEndpointSettings,
  problems: LocatedProblem[],
): UpstreamAdapter[] {
  return [settings.adapter].flat().flatMap((name) => {
    const adapter = findAdapter(name);
    if (adapter === undefined) {
      problems.push({
        path: [...path, 'adapter'],
        message: `there is no adapter "${name}"${hint(name, adapterNames())}`,
      });
      return [];
    }
    const checked = compileCheck<unknown>(adapter.schema)(settings.adapterSettings ?? {});
    if ('problems' in checked) {
      for (const problem of checked.problems)
        problems.push({ ...withHint(problem), path: [...path, 'adapterSettings', ...problem.path] });
    }
    return [adapter];
  });
}

function readCredential(
  path: readonly string[],
  settings: ServiceEndpointSettings['credential'],
  folder: string,
  env: NodeJS.ProcessEnv,
  problems: LocatedProblem[],
): { value: string; reason: undefined } | { value: undefined; reason: string } {
  if (settings.env !== undefined) {
    const value = env[settings.env]?.trim();
    if (value !== undefined && value !== '') return { value, reason: undefined };
    return { value: undefined, reason: `${settings.env} is not set` };
  }
  const file = settings.file ?? '';
  try {
    const value = readFileSync(join(folder, file), 'utf8').trim();
    if (value !== '') return { value, reason: undefined };
    return { value: undefined, reason: `the credential file ${file} is empty` };
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    if (reason !== 'ENOENT')
      problems.push({ path: [...path, 'credential', 'file'], message: `${file} cannot be read (${reason})` });
    return { value: undefined, reason: `the credential file ${file} is missing` };
  }
}

/** Connecting and waiting for headers together take at most this long; spec section 8. */
const LONGEST_CONNECTION_MS = 120_000;

function readTimeouts(
  path: readonly string[],
  settings: ServiceEndpointSettings,
  problems: LocatedProblem[],
): Upstream['timeouts'] {
  const { connect, headers, firstToken, idle } = settings.timeouts;
  const connectMs = parseDuration(connect);
  const headersMs = parseDuration(headers);
  for (const [name, value] of Object.entries({ connect: connectMs, headers: headersMs })) {
    if (value > LONGEST_CONNECTION_MS)
      problems.push({ path: [...path, 'timeouts', name], message: 'expected at most 120s' });
  }
  return {
    connectMs,
    headersMs,
    firstTokenMs: firstToken === undefined ? undefined : parseDuration(firstToken),
    idleMs: parseDuration(idle),
  };
}

function readModel(
  path: readonly string[],
  name: string,
  settings: ModelSettings,
  problems: LocatedProblem[],
): ModelEntry {
  const { aliases, context, maxOutput } = settings;
  const estimatedMaxTokens = settings.estimatedMaxTokens ?? Math.min(4_096, maxOutput);
  if (estimatedMaxTokens > maxOutput)
    problems.push({ path: [...path, 'estimatedMaxTokens'], message: `expected at most maxOutput (${maxOutput})` });
  return {
    name,
    aliases,
    context,
    maxOutput,
    estimatedMaxTokens,
    price: readPrice([...path, 'price'], settings.price, problems),
  };
}

function readPrice(path: readonly string[], settings: ModelSettings['price'], problems: LocatedProblem[]): Price {
  const read = (part: string, value: number | string | undefined, otherwise: bigint): bigint => {
    if (value === undefined) return otherwise;
    try {
      return parseUsd(decimalText(value));
    } catch (error) {
      problems.push({
        path: [...path, ...part.split('.')],
        message: error instanceof Error ? error.message : String(error),
      });
      return 0n;
    }
  };
  const tier = (prices: Omit<ModelSettings['price'], 'above'>, prefix: string) => {
    const inputE8 = read(`${prefix}input`, prices.input, 0n);
    const cacheWriteE8 = read(`${prefix}cacheWrite`, prices.cacheWrite, inputE8);
    return {
      inputE8,
      outputE8: read(`${prefix}output`, prices.output, 0n),
      cacheWriteE8,
      cacheWrite1hE8: read(`${prefix}cacheWrite1h`, prices.cacheWrite1h, cacheWriteE8),
      cacheReadE8: read(`${prefix}cacheRead`, prices.cacheRead, inputE8),
    };
  };
  const { above } = settings;
  return {
    ...tier(settings, ''),
    above: above === undefined ? undefined : { ...tier(above, 'above.'), tokens: above.tokens },
  };
}

/** YAML reads 0.0000005 as a number that JavaScript writes as 5e-7: every digit is written out, none is rounded away. */
function decimalText(value: number | string): string {
  const text = String(value);
  const [, whole, fraction = '', exponent] = /^(\d)(?:\.(\d+))?e-(\d+)$/.exec(text) ?? [];
  if (typeof value === 'string' || whole === undefined) return text;
  return `0.${'0'.repeat(Number(exponent) - 1)}${whole}${fraction}`;
}

function readCatalog(upstreams: readonly Upstream[], problems: LocatedProblem[]): Catalog | undefined {
  try {
    return buildCatalog(upstreams);
  } catch (error) {
    if (!(error instanceof CatalogProblem)) throw error;
    problems.push({ path: ['serviceEndpoints', error.upstream, 'models', error.model], message: error.message });
    return undefined;
  }
}
