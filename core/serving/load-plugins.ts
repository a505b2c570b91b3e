import { createRequire } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import { registerFrom, requireContract } from '../base/extension-contract';
import { detectLeaks } from '../base/resource-leaks';
import { compileCheck } from '../base/settings';
import { ownerNumber, watchPlugin, within } from '../base/watchdog';
import { mayBeField } from '../calls/call';
import { registerAdapter } from '../catalog/adapters';
import type { AnyAdapter } from '../catalog/upstream';
import type { Loaded, Section } from '../configuration/configuration';
import { type LocatedProblem, locate, withHint } from '../configuration/problems';
import { GATEWAY_SCHEMA, type SystemSettings } from '../configuration/schema';
import { readProxies, readSystemSettings } from '../configuration/system-settings';
import { ConfigurationError } from '../configuration/yaml-file';
import { type Manifest, OWN_MANIFESTS, settingsSchema } from '../gateway/manifest';
import { PLUGIN_CONTRACT, type Plugin } from '../gateway/plugin';
import { POLICY_CONTRACT, type Policy } from '../gateway/policy';
import type { Proxies } from '../http/proxies';

export interface LoadedPlugin {
  /** The package's name in system.config.yml, or the full path where the package was found. */
  readonly package: string;
  readonly plugin: Plugin;
  /** The plugin's settings, checked by its schema, with defaults. */
  readonly settings: unknown;
}

/** The policies, adapters and plugins that system.config.yml loads. Without them, gateway.config.yml cannot be read. */
export interface LoadedPlugins extends Loaded<Policy> {
  /** The settings of system.config.yml, with full paths of the packages that were found. */
  readonly system: SystemSettings;
  readonly manifests: readonly Manifest[];
  readonly plugins: readonly LoadedPlugin[];
  readonly proxies: Proxies;
}

/** Tollgate's own folder: the project folder when run from source, otherwise `dist`. */
const OWN_FOLDER = dirname(dirname(__dirname));

/**
 * Reads system.config.yml of a folder, loads its plugins and registers what they provide. Call it once per process.
 * @throws ConfigurationError with every problem found
 */
export function loadPlugins(configFolder: string, env: NodeJS.ProcessEnv): LoadedPlugins {
  const { settings, file } = readSystemSettings(configFolder, { ...env, EG_APP_ROOT: OWN_FOLDER });
  const system = locatePlugins(settings, configFolder);
  const problems: LocatedProblem[] = [];
  const packages = Object.entries(system.plugins).flatMap(([name, { package: packageName, ...own }]) => {
    watchPlugin(name, packageName);
    const load = () => registerFrom(packageName, () => loadPackage(name, packageName, own));
    const loaded = within(ownerNumber(`plugin ${name}`), load);
    if ('manifest' in loaded) return [loaded];
    problems.push(...loaded.problems.map((each) => ({ ...each, path: ['plugins', name, ...each.path] })));
    return [];
  });
  const plugins = packages.flatMap(pluginsOf);
  refuseTwins(packages, problems);
  const sections = sectionsOf(plugins, problems);
  const proxies = readProxies(system, problems);
  if (problems.length > 0) throw new ConfigurationError(locate(file, problems));
  const manifests = packages.map(({ manifest }) => manifest);
  const policies = manifests.flatMap(({ tollgate }) => tollgate.policies);
  return { system, manifests, plugins, policies, sections, proxies };
}

/**
 * Replaces package names by full paths where the configuration's folder contains the package. Other packages are loaded from Tollgate's own
 * folder. Express Gateway receives the resulting names and paths.
 */
function locatePlugins(system: SystemSettings, configFolder: string): SystemSettings {
  const fromConfiguration = createRequire(join(configFolder, 'system.config.yml'));
  const plugins = Object.entries(system.plugins).map(([name, settings]) => {
    try {
      return [name, { ...settings, package: fromConfiguration.resolve(settings.package) }];
    } catch {
      return [name, settings];
    }
  });
  return { ...system, plugins: Object.fromEntries(plugins) as SystemSettings['plugins'] };
}

interface LoadedPackage {
  readonly package: string;
  readonly manifest: Manifest;
  readonly settings: unknown;
}

/** Loads a package before Express Gateway does, because Express Gateway swallows errors at import. */
function loadPackage(
  name: string,
  packageName: string,
  settings: object,
): LoadedPackage | { problems: readonly LocatedProblem[] } {
  const manifest = requireManifest(packageName);
  if (typeof manifest === 'string') return { problems: [{ path: ['package'], message: manifest }] };
  if (manifest.name !== name) {
    const message = `${packageName} contains the plugin "${manifest.name}", not "${name}": write ${manifest.name}: instead of ${name}:`;
    return { problems: [{ path: [], message }] };
  }
  try {
    takeIn(manifest.tollgate);
  } catch (cause) {
    return { problems: [{ path: ['package'], message: `${packageName}: ${reasonOf(cause)}${placeOf(cause)}` }] };
  }
  const checked = compileCheck(settingsSchema(manifest.tollgate))(settings);
  if ('problems' in checked) return { problems: checked.problems.map(withHint) };
  return { package: packageName, manifest, settings: checked.value };
}

/** Registers what a package provides. @throws if one of its plugins, policies or adapters does not fulfil its contract, or is already registered */
function takeIn({ plugins, policies, adapters }: Manifest['tollgate']): void {
  for (const plugin of plugins) requireContract(plugin, PLUGIN_CONTRACT);
  for (const policy of policies) requirePolicy(policy);
  for (const adapter of adapters) registerAdapter(adapter as AnyAdapter);
  for (const { name, register } of plugins) {
    try {
      register?.();
    } catch (cause) {
      throw new Error(`the plugin "${name}" failed in \`register\`: ${reasonOf(cause)}`, { cause });
    }
  }
}

function requirePolicy(policy: Policy): void {
  requireContract(policy, POLICY_CONTRACT);
  const { name, needs, provides } = policy;
  if (![needs, provides].every((fields) => Array.isArray(fields)))
    throw new Error(`the policy "${name}" lacks \`needs\` or \`provides\`: write \`[]\` if it has none`);
  const taken = provides.find((field) => !mayBeField(field));
  if (taken !== undefined)
    throw new Error(`the policy "${name}" provides \`${taken}\`, which every call already has: rename the field`);
}

/** Returns the plugins of a package with their settings. If there are several plugins, each has its settings under its name. */
function pluginsOf({ package: packageName, manifest, settings }: LoadedPackage): LoadedPlugin[] {
  const { plugins } = manifest.tollgate;
  const own = settings as Readonly<Record<string, unknown>>;
  const settingsOf = ({ name }: Plugin) => (plugins.length === 1 ? settings : own[name]);
  return plugins.map((plugin) => ({ package: packageName, plugin, settings: settingsOf(plugin) }));
}

/** Returns a package's manifest, or a text that says what is wrong with the manifest. */
function requireManifest(packageName: string): Manifest | string {
  let manifest: Partial<Manifest>;
  try {
    manifest = require(packageName) as Partial<Manifest>;
  } catch (cause) {
    const reason = reasonOf(cause);
    const isAbsent = reason === `Cannot find module '${packageName}'` && !isAbsolute(packageName);
    const next = isAbsent ? `; ${remedyFor(packageName)}` : '';
    return `${packageName} cannot be loaded: ${reason}${lineOf(cause)}${next}`;
  }
  const { madeBy } = manifest.tollgate ?? {};
  if (madeBy === OWN_MANIFESTS) return manifest as Manifest;
  if (madeBy === undefined)
    return `${packageName} is not a Tollgate plugin: its export must be created with \`manifest\` of tollgate/manifest`;
  return `${packageName} uses another copy of Tollgate (${madeBy}) than the running one (${OWN_MANIFESTS}): declare tollgate as its peer dependency, and install it once`;
}

function remedyFor(packageName: string): string {
  if (packageName.startsWith('.')) return 'write the path of a folder or file, relative to this file';
  return `install it, or write ./${packageName} if it is a folder beside this file`;
}

function lineOf(cause: unknown): string {
  const place = cause instanceof SyntaxError ? cause.stack?.split('\n')[0] : undefined;
  return place !== undefined && /:\d+$/.test(place) ? ` (${place})` : '';
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
}

function placeOf(thrown: unknown): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  const place = cause instanceof Error ? cause.stack?.split('\n')[1]?.trim() : undefined;
  return place === undefined ? '' : ` (${place})`;
}

/** Reports two plugins or two policies of the same name. Two plugins would share settings, metrics and log lines, and a policy's name would be ambiguous. */
function refuseTwins(packages: readonly LoadedPackage[], problems: LocatedProblem[]): void {
  const known = new Map<string, string>();
  for (const { manifest, package: packageName } of packages) {
    const { plugins, policies } = manifest.tollgate;
    for (const what of [
      ...plugins.map(({ name }) => `plugin named "${name}"`),
      ...policies.map(({ name }) => `policy named "${name}"`),
    ]) {
      const other = known.get(what);
      if (other !== undefined)
        problems.push({
          path: ['plugins', manifest.name],
          message: `two packages contain a ${what}: ${other} and ${packageName}; remove one of them, or rename it`,
        });
      known.set(what, packageName);
    }
  }
}

function sectionsOf(plugins: readonly LoadedPlugin[], problems: LocatedProblem[]): ReadonlyMap<string, Section> {
  const sections = new Map<string, Section>();
  for (const { plugin } of plugins) {
    for (const [name, section] of Object.entries(plugin.sections ?? {})) {
      if (sections.has(name) || Object.hasOwn(GATEWAY_SCHEMA.properties, name)) {
        const message = `its section "${name}" of gateway.config.yml already belongs to another plugin`;
        problems.push({ path: ['plugins', plugin.name], message });
      }
      sections.set(name, watched(section, `plugin ${plugin.name}`));
    }
  }
  return sections;
}

function watched(section: Section, owner: string): Section {
  const { check, rollouts } = section;
  const number = ownerNumber(owner);
  const watch = <T>(work: () => T) => within(number, () => detectLeaks(owner, work));
  return {
    ...section,
    ...(check && { check: (...given) => watch(() => check(...given)) }),
    ...(rollouts && { rollouts: (value) => watch(() => rollouts(value)) }),
  };
}
