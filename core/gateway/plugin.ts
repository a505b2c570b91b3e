import type { OwnHosts, Route } from '../api/route';
import type { ExtensionContract } from '../base/extension-contract';
import type { Stop } from '../base/resources';
import type { Schema, Settings } from '../base/settings';
import type { Section } from '../configuration/configuration';
import type { PluginGateway } from './plugin-gateway';

/** The check of each plugin when its package is loaded. */
export const PLUGIN_CONTRACT: ExtensionContract = {
  kind: 'plugin',
  version: 'plugin/1',
  functions: [],
  optional: ['register', 'routes', 'hosts', 'start'],
};

/** A plugin without the types of its settings, as a manifest holds it. */
export interface Plugin<S extends Schema = Schema, V = unknown> {
  readonly contract: 'plugin/1';
  /** Its folder under `plugins/` and its name in system.config.yml. */
  readonly name: string;
  readonly summary: string;
  /** JSON Schema of its settings in system.config.yml, `package` aside. */
  readonly schema: S;
  /** The top-level keys of gateway.config.yml that are its own. */
  readonly sections?: Readonly<Record<string, Section>>;
  /** Runs once, before any configuration is read: registers drivers and the like. */
  readonly register?: () => void;
  /** Runs once, when the stores are open. The gateway serves the routes that it returns. A plugin that throws stops the start. */
  readonly routes?: (settings: V, gateway: PluginGateway) => readonly Route[];
  /** Runs once, beside `routes`. */
  readonly hosts?: (settings: V, gateway: PluginGateway) => OwnHosts | undefined;
  /**
   * Runs once, before the process serves, and begins background work. It returns what ends that work, after calls have ended and
   * before the stores close.
   */
  readonly start?: (settings: V, gateway: PluginGateway) => Promise<Stop>;
}

/** A part of the gateway that is not a step of a call: endpoints, background work, a section of the configuration. */
export type PluginDefinition<S extends Schema> = Plugin<S, Settings<S>>;

/** Helps TypeScript check a plugin against its own settings. */
export function definePlugin<const S extends Schema>(definition: PluginDefinition<S>): Plugin {
  return definition as unknown as Plugin;
}
