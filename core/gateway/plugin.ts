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

/** A part of the gateway that is no step of a call: endpoints, background work, a part of the configuration. */
export interface PluginDefinition<S extends Schema> {
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
  readonly routes?: (settings: Settings<S>, gateway: PluginGateway) => readonly Route[];
  /** Runs once, beside `routes`. */
  readonly hosts?: (settings: Settings<S>, gateway: PluginGateway) => OwnHosts | undefined;
  /** Runs once, before the process serves: begins work that goes on by itself. What it returns ends that work; calls have ended then, the stores are still open. */
  readonly start?: (settings: Settings<S>, gateway: PluginGateway) => Promise<Stop>;
}

/** A plugin with the types of its settings forgotten, as a manifest holds it. */
export interface Plugin {
  readonly contract: 'plugin/1';
  readonly name: string;
  readonly summary: string;
  readonly schema: Schema;
  readonly sections?: Readonly<Record<string, Section>>;
  readonly register?: () => void;
  readonly routes?: (settings: unknown, gateway: PluginGateway) => readonly Route[];
  readonly hosts?: (settings: unknown, gateway: PluginGateway) => OwnHosts | undefined;
  readonly start?: (settings: unknown, gateway: PluginGateway) => Promise<Stop>;
}

/** Helps TypeScript check a plugin against its own settings. */
export function definePlugin<const S extends Schema>(definition: PluginDefinition<S>): Plugin {
  return definition as unknown as Plugin;
}
