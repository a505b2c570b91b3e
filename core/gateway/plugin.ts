import type { OwnHosts, Route } from '../api/route';
import type { Section } from '../configuration/section';
import type { Contract } from '../contracts';
import type { Stop } from '../resources';
import type { Schema, Settings } from '../settings';
import type { PluginGateway } from './plugin-gateway';

/** What is checked of each plugin when its package is loaded. */
export const PLUGIN_CONTRACT: Contract = {
  kind: 'plugin',
  versions: ['plugin/1'],
  functions: [],
  optional: ['register', 'routes', 'hosts', 'start'],
};

/** A part of the gateway that is no step of a call, with the types of its settings forgotten, as a manifest holds it. */
export interface Plugin<S extends Schema = Schema, V = unknown> {
  readonly contract: 'plugin/1';
  /** Its folder under `plugins/` and its name in system.config.yml. */
  readonly name: string;
  /** In a few words, what it adds. */
  readonly summary: string;
  /** JSON Schema of its settings in system.config.yml, `package` aside. */
  readonly schema: S;
  /** The top-level keys of gateway.config.yml that are its own. */
  readonly sections?: Readonly<Record<string, Section>>;
  /** Runs once, before any configuration is read: registers drivers and the like. */
  readonly register?: () => void;
  /** Runs once, when the stores are open; what it returns is served. A plugin that throws stops the start. */
  readonly routes?: (settings: V, gateway: PluginGateway) => readonly Route[];
  /** Runs once, beside `routes`. */
  readonly hosts?: (settings: V, gateway: PluginGateway) => OwnHosts | undefined;
  /** Runs once, before the process serves: begins work that goes on by itself. What it returns ends that work; calls have ended then, the stores are still open. */
  readonly start?: (settings: V, gateway: PluginGateway) => Promise<Stop>;
}

/** A part of the gateway that is no step of a call: endpoints, background work, a part of the configuration. */
export type PluginDefinition<S extends Schema> = Plugin<S, Settings<S>>;

/** Helps TypeScript check a plugin against its own settings. */
export function definePlugin<const S extends Schema>(definition: PluginDefinition<S>): Plugin {
  return definition as unknown as Plugin;
}
