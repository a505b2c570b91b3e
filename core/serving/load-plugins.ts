import { createRequire } from 'node:module';
import { dirname, isAbsolute, join } from 'node:path';
import type { Loaded } from '../configuration/configuration';
import { type LocatedProblem, locate, withHint } from '../configuration/problems';
import { readProxies } from '../configuration/read-proxies';
import { GATEWAY_SCHEMA, type SystemSettings } from '../configuration/schema';
import type { Section } from '../configuration/section';
import { readSystemSettings } from '../configuration/system-settings';
import { ConfigurationError } from '../configuration/yaml-file';
import type { Manifest } from '../gateway/manifest';
import type { Policy } from '../gateway/policy';
import type { Proxies } from '../http/proxies';
import { leavesNothing } from '../left-open';
import { compileCheck } from '../settings';
import { ownerNumber, watchPlugin, within } from '../watchdog';

export interface LoadedPlugin {
  /** As system.config.yml names it, or with its full path where it was found. */
  readonly package: string;
  readonly manifest: Manifest;
  /** As its schema let them pass, with their defaults. */
  readonly settings: unknown;
}

/** What system.config.yml names, loaded: with it gateway.config.yml can be read. */
export interface LoadedPlugins extends Loaded<Policy> {
  /** Packages stand in it with full paths where they were found. */
  readonly system: SystemSettings;
  readonly plugins: readonly LoadedPlugin[];
  readonly proxies: Proxies;
}

/** Tollgate's own folder: the project's, or dist. */
const OWN_FOLDER = dirname(dirname(__dirname));

/**
 * Reads system.config.yml of a folder, loads its plugins and registers what they bring. Once per process.
 * @throws ConfigurationError with every problem found
 */
export function loadPlugins(configFolder: string, env: NodeJS.ProcessEnv): LoadedPlugins {
  const { settings, file } = readSystemSettings(configFolder, { ...env, EG_APP_ROOT: OWN_FOLDER });
  const system = locatePlugins(settings, configFolder);
  const problems: LocatedProblem[] = [];
  const plugins = Object.entries(system.plugins).flatMap(([name, { package: packageName, ...own }]) => {
    watchPlugin(name, packageName);
    const loaded = within(ownerNumber(`plugin ${name}`), () => loadPlugin(packageName, own));
    if ('manifest' in loaded) return [loaded];
    problems.push(...loaded.problems.map((each) => ({ ...each, path: ['plugins', name, ...each.path] })));
    return [];
  });
  refuseTwins(plugins, problems);
  const sections = sectionsOf(plugins, problems);
  const proxies = readProxies(system, plugins, problems);
  if (problems.length > 0) throw new ConfigurationError(locate(file, problems));
  const policies = plugins.flatMap(({ manifest }) => manifest.tollgate.policies ?? []);
  return { system, plugins, policies, sections, proxies };
}

/** Packages are looked for from the configuration's folder, then from Tollgate's own. Express Gateway is given full paths. */
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

/** Required here first, because Express Gateway swallows what goes wrong at import. */
function loadPlugin(packageName: string, settings: object): LoadedPlugin | { problems: LocatedProblem[] } {
  const required = requireManifest(packageName);
  if (typeof required === 'string') return { problems: [{ path: ['package'], message: required }] };
  const { plugin } = required.tollgate;
  try {
    plugin?.register?.();
  } catch (cause) {
    const place = cause instanceof Error ? cause.stack?.split('\n')[1]?.trim() : undefined;
    return {
      problems: [
        { path: ['package'], message: `${packageName} failed in \`register\`: ${reasonOf(cause)} ${place ?? ''}` },
      ],
    };
  }
  if (plugin === undefined) return { package: packageName, manifest: required, settings };
  const checked = compileCheck({ additionalProperties: false, ...plugin.schema })(settings);
  if ('problems' in checked) return { problems: checked.problems.map(withHint) };
  return { package: packageName, manifest: required, settings: checked.value };
}

/** The manifest, or what is wrong with it. */
function requireManifest(packageName: string): Manifest | string {
  try {
    const manifest = require(packageName) as Partial<Manifest>;
    if (manifest.tollgate !== undefined) return manifest as Manifest;
  } catch (cause) {
    const reason = reasonOf(cause);
    const isAbsent = reason === `Cannot find module '${packageName}'` && !isAbsolute(packageName);
    const next = isAbsent ? `; install it, or write ./${packageName} when it is a folder beside this file` : '';
    return `${packageName} cannot be loaded: ${reason}${next}`;
  }
  return `${packageName} is not a Tollgate plugin: its manifest must be made with pluginManifest or policiesManifest`;
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
}

/** Two plugins of one name would take each other's settings, metrics and log lines. */
function refuseTwins(plugins: readonly LoadedPlugin[], problems: LocatedProblem[]): void {
  const known = new Map<string, string>();
  for (const { manifest, package: packageName } of plugins) {
    const { name } = manifest;
    const other = known.get(name);
    if (other !== undefined)
      problems.push({
        path: ['plugins', name],
        message: `two packages bring a plugin named "${name}": ${other} and ${packageName}`,
      });
    known.set(name, packageName);
  }
}

function sectionsOf(plugins: readonly LoadedPlugin[], problems: LocatedProblem[]): ReadonlyMap<string, Section> {
  const sections = new Map<string, Section>();
  for (const { manifest } of plugins) {
    for (const [name, section] of Object.entries(manifest.tollgate.plugin?.sections ?? {})) {
      if (sections.has(name) || Object.hasOwn(GATEWAY_SCHEMA.properties, name)) {
        const message = `its section "${name}" of gateway.config.yml is already taken`;
        problems.push({ path: ['plugins', manifest.name], message });
      }
      sections.set(name, watched(section, `plugin ${manifest.name}`));
    }
  }
  return sections;
}

function watched(section: Section, owner: string): Section {
  const { check, rollouts } = section;
  const number = ownerNumber(owner);
  const watch = <T>(work: () => T) => within(number, () => leavesNothing(owner, work));
  return {
    ...section,
    ...(check && { check: (...given) => watch(() => check(...given)) }),
    ...(rollouts && { rollouts: (value) => watch(() => rollouts(value)) }),
  };
}
