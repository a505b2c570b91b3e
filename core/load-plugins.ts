import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { type Loaded, loadSystemSettings } from './configuration';
import { GATEWAY_SCHEMA, type SystemSettings } from './configuration-schema';
import type { Manifest } from './express-gateway';
import type { Section } from './plugin';
import { compileCheck } from './settings';
import { StartFailure } from './start-failure';

export interface LoadedPlugin {
  readonly manifest: Manifest;
  /** As its schema let them pass, with their defaults. */
  readonly settings: unknown;
}

/** What system.config.yml names, loaded: with it gateway.config.yml can be read. */
export interface LoadedPlugins extends Loaded {
  /** Packages stand in it with full paths where they were found. */
  readonly system: SystemSettings;
  readonly plugins: readonly LoadedPlugin[];
}

/** Tollgate's own folder: the project's, or dist. */
const OWN_FOLDER = dirname(__dirname);

/**
 * Reads system.config.yml of a folder, loads its plugins and registers what they bring. Once per process.
 * @throws ConfigurationError, StartFailure
 */
export function loadPlugins(configFolder: string, env: NodeJS.ProcessEnv): LoadedPlugins {
  const settings = loadSystemSettings(configFolder, { ...env, EG_APP_ROOT: OWN_FOLDER });
  const system = locatePlugins(settings, configFolder);
  const plugins = Object.entries(system.plugins).map(([name, { package: packageName, ...own }]) =>
    loadPlugin(name, packageName, own),
  );
  return {
    system,
    plugins,
    policies: plugins.flatMap(({ manifest }) => manifest.tollgate.policies ?? []),
    sections: sectionsOf(plugins),
  };
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
function loadPlugin(name: string, packageName: string, settings: object): LoadedPlugin {
  const manifest = requireManifest(name, packageName);
  const { plugin } = manifest.tollgate;
  plugin?.register?.();
  return { manifest, settings: plugin === undefined ? settings : checkSettings(name, plugin.schema, settings) };
}

function requireManifest(name: string, packageName: string): Manifest {
  try {
    const manifest = require(packageName) as Partial<Manifest>;
    if (manifest.tollgate !== undefined) return manifest as Manifest;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split('\n')[0] : String(cause);
    throw new StartFailure(`system.config.yml: plugin "${name}" cannot be loaded from ${packageName}: ${reason}`, {
      cause,
    });
  }
  throw new StartFailure(
    `system.config.yml: ${packageName} of plugin "${name}" is not a Tollgate plugin: its manifest must be made with pluginManifest or policiesManifest`,
  );
}

function checkSettings(name: string, schema: object, settings: object): unknown {
  const checked = compileCheck({ additionalProperties: false, ...schema })(settings);
  if ('value' in checked) return checked.value;
  const lines = checked.problems.map(
    ({ path, message }) => `system.config.yml: plugins.${[name, ...path].join('.')}: ${message}`,
  );
  throw new StartFailure(lines.join('\n'));
}

function sectionsOf(plugins: readonly LoadedPlugin[]): ReadonlyMap<string, Section> {
  const sections = new Map<string, Section>();
  for (const { manifest } of plugins) {
    for (const [name, section] of Object.entries(manifest.tollgate.plugin?.sections ?? {})) {
      if (sections.has(name) || Object.hasOwn(GATEWAY_SCHEMA.properties, name))
        throw new StartFailure(`plugin "${manifest.name}": the section "${name}" of gateway.config.yml is taken`);
      sections.set(name, section);
    }
  }
  return sections;
}
