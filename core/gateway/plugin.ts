import type { OwnHosts, Route } from '../api/route';
import type { ExtensionContract } from '../base/extension-contract';
import type { Stop } from '../base/resources';
import type { Schema, Settings } from '../base/settings';
import type { Section } from '../configuration/configuration';
import type { PluginGateway } from './plugin-gateway';

/** The requirements that each plugin is checked against when its package is loaded. */
export const PLUGIN_CONTRACT: ExtensionContract = {
  kind: 'plugin',
  version: 'plugin/1',
  functions: [],
  optional: ['register', 'routes', 'hosts', 'start'],
};

/** A plugin in a manifest. The TypeScript types of its settings are unknown there. */
export interface Plugin<S extends Schema = Schema, V = unknown> {
  readonly contract: 'plugin/1';
  /** The plugin's folder under `plugins/`, and its name in system.config.yml. */
  readonly name: string;
  readonly summary: string;
  /** The JSON Schema of the plugin's settings in system.config.yml, except the setting `package`. */
  readonly schema: S;
  /** The top-level keys of gateway.config.yml that belong to the plugin, each with its schema. */
  readonly sections?: Readonly<Record<string, Section>>;
  /** Runs once, before any configuration is read. It registers, for example, sandbox drivers or adapters. */
  readonly register?: () => void;
  /** Runs once, when the connections to the stores are open, and returns the routes to serve. If it throws, the process does not start. */
  readonly routes?: (settings: V, gateway: PluginGateway) => readonly Route[];
  /** Runs once, together with `routes`. Returns the hosts whose requests the plugin serves. */
  readonly hosts?: (settings: V, gateway: PluginGateway) => OwnHosts | undefined;
  /**
   * Runs once, before the process serves requests, and starts background work. Returns a function that ends the work; it runs after all
   * calls have ended and before the stores close.
   */
  readonly start?: (settings: V, gateway: PluginGateway) => Promise<Stop>;
}

/** A part of the gateway that is not a step of a call: endpoints, background work, a section of the configuration. */
export type PluginDefinition<S extends Schema> = Plugin<S, Settings<S>>;

/** Helps TypeScript check a plugin against its own settings. */
export function definePlugin<const S extends Schema>(definition: PluginDefinition<S>): Plugin {
  return definition as unknown as Plugin;
}
