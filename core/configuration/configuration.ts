import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Catalog, Upstream } from '../catalog/catalog';
import type { Rollout } from '../rollouts/rollout';
import { compileCheck } from '../settings';
import { readCustomerPrices } from './customer-prices';
import { withoutOwnSecrets } from './own-secrets';
import { type PipelineSettings, readPipelines } from './pipelines';
import type { PolicyShape } from './policy-shape';
import { withPublishedPrices } from './price-lists';
import { type LocatedProblem, locate, withHint } from './problems';
import { RotatingCredential } from './rotating-credential';
import { GATEWAY_SCHEMA, type GatewaySettings } from './schema';
import type { Section } from './section';
import { soundPart, withEmptyMaps } from './sound-part';
import { readCatalog, readUpstreams } from './upstreams';
import { namesWritten, unknownNames } from './written-names';
import { ConfigurationError, type ConfigurationProblem, parseYamlFile } from './yaml-file';

/** `P`: the policies as far as they are known: their shapes, or with what prepares them for calls. */
export interface Configuration<P extends PolicyShape = PolicyShape> {
  /** Short hash of gateway.config.yml as it stands in the file. */
  readonly revision: string;
  /** Of the applied revision that it is; undefined for a file. */
  readonly number: number | undefined;
  /** As it stands in the file. */
  readonly text: string;
  readonly gateway: GatewaySettings;
  /** What stands in the file, with its variables as they are written: what is shown to people is taken from here. */
  readonly written: unknown;
  readonly pipelines: readonly PipelineSettings<P>[];
  readonly catalog: Catalog;
  /** What stands under the keys that plugins own, by key. */
  readonly sections: ReadonlyMap<string, unknown>;
  /** What goes out in stages; at most one of them concerns a call. */
  readonly rollouts: readonly Rollout[];
  /** What works and is perhaps not meant. */
  readonly warnings: readonly ConfigurationProblem[];
}

/** What is loaded beside the configuration, and gives its words their meaning. */
export interface Loaded<P extends PolicyShape = PolicyShape> {
  readonly policies: readonly P[];
  /** By key. */
  readonly sections: ReadonlyMap<string, Section>;
}

/**
 * Reads gateway.config.yml of a folder, as often as it is asked, or a text in its place, and checks it as a whole: schema,
 * policies and their order, endpoints, upstreams, adapters, models, prices, the plugins' sections. Adapters must have been registered.
 * @throws ConfigurationError with every problem found
 */
export type ReadConfiguration<P extends PolicyShape = PolicyShape> = (
  folder: string,
  env: NodeJS.ProcessEnv,
  text?: string,
) => Configuration<P>;

export function configurationReader<P extends PolicyShape>({ policies, sections }: Loaded<P>): ReadConfiguration<P> {
  const schema = { ...gatewaySchema(sections), required: [] };
  const check = compileCheck<GatewaySettings>(schema);
  const checkRest = compileCheck<GatewaySettings>(withEmptyMaps(schema));
  return (folder, env, text) => {
    const file = parseYamlFile(join(folder, 'gateway.config.yml'), withoutOwnSecrets(env), text);
    const problems: LocatedProblem[] = [];
    const value = withPublishedPrices(file.value ?? {}, problems);
    const written = namesWritten(file.value);
    const isThere = (key: string) => written.keys.includes(key);
    const missing = GATEWAY_SCHEMA.required.filter((key) => !isThere(key) && !(key === 'http' && isThere('https')));
    if (isThere('http') && isThere('https')) problems.push({ path: ['https'], message: ONE_LISTENER });
    const lost = [...file.unset.map(({ path }) => path), ...problems.flatMap(unpublished)];
    const sound = soundPart(check, checkRest, value, lost);
    const gateway = withPublicListener({ ...nothingBut(policies), ...sound.value });
    problems.push(
      ...missing.map((key) => ({ path: [], message: `"${key}" is missing` })),
      ...sound.problems.map(withHint),
      ...unknownNames(sound.names, written),
    );
    const pipelines = readPipelines(gateway, written, policies, problems);
    const upstreams = readUpstreams(gateway, folder, env, problems);
    const catalog = readCatalog(upstreams, readCustomerPrices(gateway, problems), problems);
    const given = readSections(gateway, sections, { catalog, pipelines }, problems);
    if (problems.length > 0 || file.unset.length > 0 || catalog === undefined)
      throw new ConfigurationError([...file.unset.map(({ problem }) => problem), ...locate(file, problems)]);
    const revision = createHash('sha256').update(file.text).digest('hex').slice(0, 12);
    const warnings = locate(file, upstreams.flatMap(disabledWarning));
    const rollouts = [...given].flatMap(([name, value]) => sections.get(name)?.rollouts?.(value as never) ?? []);
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

const ONE_LISTENER = 'is the public listener with TLS, and `http` the one without: remove one of them';

/** `http` says where the public listener is, with TLS too. */
function withPublicListener({ http, https, ...rest }: GatewaySettings): GatewaySettings {
  if (https === undefined) return { ...rest, http };
  const { port, hostname } = https;
  return { ...rest, http: { port, hostname }, https };
}

/** What a model would have from a price list that was not found. */
function unpublished({ path }: LocatedProblem): (readonly (string | number)[])[] {
  const model = path.slice(0, -1);
  return ['context', 'maxOutput', 'price'].map((member) => [...model, member]);
}

/** Rotating credentials are fetched when the configuration comes into force, and not for a look at it. */
function disabledWarning({ name, disabled, credentials }: Upstream): LocatedProblem[] {
  const path = ['serviceEndpoints', name, credentials.length === 1 ? 'credential' : 'credentials'];
  if (disabled !== undefined) return [{ path, message: `upstream "${name}" is disabled: ${disabled}` }];
  return credentials.flatMap((each) =>
    each.missing === undefined || each instanceof RotatingCredential
      ? []
      : [{ path, message: `upstream "${name}" is asked without one of its credentials: ${each.missing}` }],
  );
}

/** A plugin's key is known at the top level like our own. */
export function gatewaySchema(sections: Loaded['sections']): typeof GATEWAY_SCHEMA {
  const own = [...sections].map(([name, { schema }]) => [name, schema] as const);
  return { ...GATEWAY_SCHEMA, properties: { ...GATEWAY_SCHEMA.properties, ...Object.fromEntries(own) } };
}

/** In place of what could not be read; where the policies are not known to be declared or not, they count as declared. */
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
