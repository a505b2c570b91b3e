import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { compileCheck, type Problem, type Schema } from '../base/settings';
import { type Catalog, type ModelEntry, protocolsOf, type Upstream } from '../catalog/catalog';
import { type RetiringModel, retiringModels } from '../catalog/facts';
import type { Meter } from '../catalog/usage';
import { REQUEST_TABLES, usedMeters } from '../protocols/request-tables';
import type { Rollout } from '../rollouts/rollout';
import { BY_FILE, byRevision, credentialNames, type OwnNames } from './nameable';
import { type PipelineSettings, type PolicyShape, readPipelines } from './pipelines';
import { withPublishedPrices } from './price-lists';
import { readCustomerPrices } from './prices';
import { declaredNames, type LocatedProblem, locate, unknownNames, withHint } from './problems';
import { RotatingCredential } from './rotating-credential';
import { GATEWAY_SCHEMA, type GatewaySettings } from './schema';
import { readCatalog, readUpstreams } from './upstreams';
import { withEmptyMaps, withoutInvalidParts } from './valid-part';
import { ConfigurationError, type ConfigurationProblem, parseYamlFile } from './yaml-file';

/** A checked configuration. `P` is the type of its policies: only their descriptions, or also the functions that prepare them for calls. */
export interface Configuration<P extends PolicyShape = PolicyShape> {
  /** A short hash of the text of gateway.config.yml. */
  readonly revision: string;
  /** The number of the applied revision; undefined for a configuration that was read from a file. */
  readonly number: number | undefined;
  /** The text of gateway.config.yml. */
  readonly text: string;
  readonly gateway: GatewaySettings;
  /** The parsed file with its variables unreplaced. The gateway shows only this form to people, because replaced values may be secrets. */
  readonly written: unknown;
  readonly pipelines: readonly PipelineSettings<P>[];
  readonly catalog: Catalog;
  /** The values of the top-level keys that plugins own, by key. */
  readonly sections: ReadonlyMap<string, unknown>;
  /** The rollouts: changes that first apply to only some of the calls. At most one rollout applies to a call. */
  readonly rollouts: readonly Rollout[];
  /** Warnings about settings that are valid but may be unintended. */
  readonly warnings: readonly ConfigurationProblem[];
}

/** What the process has loaded for configurations: policies and the top-level keys of plugins. */
export interface Loaded<P extends PolicyShape = PolicyShape> {
  readonly policies: readonly P[];
  /** The top-level keys that plugins own, by name. */
  readonly sections: ReadonlyMap<string, Section>;
}

/**
 * Reads gateway.config.yml from a folder, or uses the text of a revision instead, and checks it as a whole. The checks cover schema,
 * policies and their order, endpoints, upstreams, adapters, models, prices and the plugins' sections. Adapters must be registered first.
 * Repeated calls are possible.
 * @throws ConfigurationError with every problem found
 */
type ReadConfiguration<P extends PolicyShape = PolicyShape> = (
  folder: string,
  env: NodeJS.ProcessEnv,
  text?: string,
) => Configuration<P>;

export function configurationReader<P extends PolicyShape>({ policies, sections }: Loaded<P>): ReadConfiguration<P> {
  const schema = { ...gatewaySchema(sections), required: [] };
  const check = compileCheck<GatewaySettings>(schema);
  const checkRest = compileCheck<GatewaySettings>(withEmptyMaps(schema));
  let own: OwnNames | undefined;
  return (folder, env, text) => {
    const path = join(folder, 'gateway.config.yml');
    if (text !== undefined) own ??= ownNames(path, env);
    const nameable = text === undefined || own === undefined ? BY_FILE : byRevision(own, env);
    const file = parseYamlFile(path, env, nameable, text);
    const problems: LocatedProblem[] = [];
    const value = withPublishedPrices(file.value ?? {}, problems);
    const written = declaredNames(file.value);
    const isThere = (key: string) => written.keys.includes(key);
    const missing = GATEWAY_SCHEMA.required.filter((key) => !isThere(key) && !(key === 'http' && isThere('https')));
    if (isThere('http') && isThere('https')) problems.push({ path: ['https'], message: ONE_LISTENER });
    const lost = [...file.unset.map(({ path }) => path), ...problems.flatMap(unpublished)];
    const sound = withoutInvalidParts(check, checkRest, value, lost);
    const gateway = withPublicListener({ ...nothingBut(policies), ...sound.value });
    problems.push(
      ...missing.map((key) => ({ path: [], message: `"${key}" is missing` })),
      ...sound.problems.map(withHint),
      ...unknownNames(sound.names, written),
    );
    const pipelines = readPipelines(gateway, written, policies, problems);
    const upstreams = readUpstreams(gateway, { folder, env, nameable, problems });
    const catalog = readCatalog(upstreams, readCustomerPrices(gateway, problems), problems);
    const given = readSections(gateway, sections, { catalog, pipelines }, problems);
    if (problems.length > 0 || file.unset.length > 0 || catalog === undefined)
      throw new ConfigurationError([...file.unset.map(({ problem }) => problem), ...locate(file, problems)]);
    const revision = createHash('sha256').update(file.text).digest('hex').slice(0, 12);
    const found = [...given].map(
      ([name, value]) => [name, sections.get(name)?.rollouts?.(value as never) ?? []] as const,
    );
    const rollouts = found.flatMap(([, each]) => each);
    const warnings = locate(file, [
      ...upstreams.flatMap(disabledWarning),
      ...unpricedWarnings(upstreams, pipelines),
      ...retiringModels(upstreams).map(retiringWarning),
      ...found.flatMap(([section, each]) => each.flatMap((rollout) => fewAccountsWarning(section, rollout))),
    ]);
    return {
      revision,
      number: undefined,
      text: file.text,
      gateway,
      written: file.written,
      pipelines,
      catalog,
      sections: given,
      rollouts,
      warnings,
    };
  };
}

/** Returns the names of variables that a file uses; none if it cannot be read, because a node that only follows revisions needs no file. */
function ownNames(path: string, env: NodeJS.ProcessEnv): OwnNames {
  try {
    const { value, variables } = parseYamlFile(path, env, BY_FILE);
    return { credentials: credentialNames(value), variables };
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error;
    return { credentials: new Set(), variables: new Set() };
  }
}

const ONE_LISTENER = 'is the public listener with TLS, and `http` the one without: remove one of them';

/** Returns the settings with the address of the public TLS listener added to `http`. */
function withPublicListener({ http, https, ...rest }: GatewaySettings): GatewaySettings {
  if (https === undefined) return { ...rest, http };
  const { port, hostname } = https;
  return { ...rest, http: { port, hostname }, https };
}

/** Returns the paths of required settings that a model lacks only because its price list was not found. */
function unpublished({ path }: LocatedProblem): (readonly (string | number)[])[] {
  const model = path.slice(0, -1);
  return ['context', 'maxOutput', 'price'].map((member) => [...model, member]);
}

/**
 * Returns warnings about an upstream that is disabled or lacks a credential. Rotating credentials cause none, because the gateway fetches
 * them only when the configuration takes effect.
 */
function disabledWarning({ name, disabled, credentials }: Upstream): LocatedProblem[] {
  const path = ['serviceEndpoints', name, credentials.length === 1 ? 'credential' : 'credentials'];
  if (disabled !== undefined) return [{ path, message: `upstream "${name}" is disabled: ${disabled}` }];
  return credentials.flatMap((each) =>
    each.missing === undefined || each instanceof RotatingCredential
      ? []
      : [{ path, message: `upstream "${name}" is called without one of its credentials: ${each.missing}` }],
  );
}

function retiringWarning({ upstream, model, retires }: RetiringModel): LocatedProblem {
  const path = ['serviceEndpoints', upstream, 'models', model];
  return { path, message: `the model "${model}" of upstream "${upstream}" retires on ${retires}: add its successor` };
}

/** Returns warnings about rollout guards that compare accounts, because only the operator knows whether the rollout has enough accounts. */
function fewAccountsWarning(section: string, { name, stickyBy, guards, stages }: Rollout): LocatedProblem[] {
  const index = stages.findIndex(({ share }) => share > 0);
  const stage = stages[index];
  if (stickyBy === 'request' || guards.length === 0 || stage === undefined) return [];
  const accounts = Math.ceil(10 / stage.share);
  const message = `guards need calls of ten accounts, and stage ${index + 1} has them only of ${accounts} accounts in all on: with fewer, use \`stickyBy: request\``;
  return [{ path: [section, name, 'stages', index, 'share'], message }];
}

/** Returns the schema of gateway.config.yml with the plugins' top-level keys added to the gateway's own. */
export function gatewaySchema(sections: Loaded['sections']): typeof GATEWAY_SCHEMA {
  const own = [...sections].map(([name, { schema }]) => [name, schema] as const);
  return { ...GATEWAY_SCHEMA, properties: { ...GATEWAY_SCHEMA.properties, ...Object.fromEntries(own) } };
}

/** Returns empty settings for an unreadable file. They declare all loaded policies, because it is unknown which ones the file declares. */
function nothingBut(policies: readonly PolicyShape[]): GatewaySettings {
  const listener = { port: 0, hostname: '', host: '' };
  const names = policies.map(({ name }) => name);
  return { http: listener, admin: listener, apiEndpoints: {}, serviceEndpoints: {}, policies: names, pipelines: {} };
}

function readSections(
  gateway: GatewaySettings & Readonly<Record<string, unknown>>,
  sections: Loaded['sections'],
  { catalog, pipelines }: { catalog: Catalog | undefined; pipelines: readonly PipelineSettings[] },
  problems: LocatedProblem[],
): Configuration['sections'] {
  const given = [...sections].filter(([name]) => gateway[name] !== undefined);
  const isWrong = (part: keyof GatewaySettings) => problems.some(({ path }) => path[0] === part);
  const soundCatalog = isWrong('serviceEndpoints') ? undefined : catalog;
  const soundPipelines = isWrong('pipelines') ? undefined : pipelines;
  for (const [name, { check }] of given) {
    const found = check?.(gateway[name] as never, soundCatalog, soundPipelines) ?? [];
    problems.push(...found.map(({ path, message }) => ({ path: [name, ...path], message })));
  }
  return new Map(given.map(([name]) => [name, gateway[name]]));
}

/** A top-level key of gateway.config.yml that a plugin owns. `gateway.section(name)` returns its checked value. */
export interface Section {
  /** The JSON Schema of the value under the key. */
  readonly schema: Schema;
  /**
   * Checks what the schema cannot express, after the schema has accepted the value. Paths of problems are relative to the key. If the
   * catalog or the pipelines have mistakes, their argument is undefined. The check must then not report names of models or pipelines as
   * unknown.
   */
  readonly check?: (
    value: never,
    catalog: Catalog | undefined,
    pipelines: readonly PipelineSettings[] | undefined,
  ) => readonly Pick<Problem, 'path' | 'message'>[];
  /** Returns the changes under this key that take effect in stages. */
  readonly rollouts?: (value: never) => readonly Rollout[];
}

/**
 * Returns a warning for each enabled upstream whose models lack prices for tools that clients may use, because the platform pays for such
 * uses. There is no warning if the operator has set `unpricedTools` at the upstream, because the operator has then decided.
 */
export function unpricedWarnings(
  upstreams: readonly Upstream[],
  pipelines: readonly Pick<PipelineSettings, 'steps'>[],
): LocatedProblem[] {
  if (pipelines.every(refusesUnpriced)) return [];
  return upstreams.flatMap((upstream) => {
    const { name, models, disabled, unpricedTools } = upstream;
    if (disabled !== undefined || unpricedTools !== undefined) return [];
    const lacking = models.flatMap((model) => {
      const meters = missingMeters(upstream, model);
      return meters.length === 0 ? [] : [`${model.name} (${meters.join(', ')})`];
    });
    if (lacking.length === 0) return [];
    const message = `upstream "${name}" has models without a price for tools that clients may offer, which you pay: ${lacking.join('; ')}. Add price.pieces, or set unpricedTools to "refuse" or "forward"`;
    return [{ path: ['serviceEndpoints', name, 'models'], message }];
  });
}

function missingMeters(upstream: Upstream, model: ModelEntry): readonly Meter[] {
  const meters = protocolsOf({ upstream, model }).flatMap((protocol) => usedMeters(REQUEST_TABLES[protocol]));
  return [...new Set(meters)].filter((meter) => !model.price.pieces.has(meter));
}

function refusesUnpriced({ steps }: Pick<PipelineSettings, 'steps'>): boolean {
  return steps.every(
    ({ policy, settings }) =>
      policy.name !== 'model-request' || (settings as { unpricedTools?: string }).unpricedTools === 'refuse',
  );
}
