import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Schema } from '../base/settings';
import type { AdapterExport } from '../catalog/upstream';
import type { Plugin } from './plugin';
import type { Policy } from './policy';

export type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

/** The object that Express Gateway passes to a manifest's `init`. */
interface PluginContext {
  registerPolicy(policy: ExpressGatewayPolicy): void;
}

export interface ExpressGatewayPolicy {
  readonly name: string;
  readonly schema: object;
  readonly policy: (action: Record<string, unknown>) => Middleware;
}

/** The plugins, policies and adapters of one package. */
export interface PackageExports {
  readonly plugins: readonly Plugin[];
  readonly policies: readonly Policy[];
  readonly adapters: readonly AdapterExport[];
}

/** The object that a package's file exports; system.config.yml names that file. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly schema: object;
  readonly policies: readonly string[];
  readonly init: (context: PluginContext) => void;
  /** The part of the manifest for Tollgate, which Express Gateway does not read. */
  readonly tollgate: PackageExports & {
    /**
     * The path of the Tollgate file that made the manifest. A package that imports another copy of Tollgate would register its parts where
     * no gateway reads them.
     */
    readonly madeBy: string;
  };
}

type Initialise = (manifest: Manifest, context: PluginContext) => void;

let initialise: Initialise = ({ name }) => {
  throw new Error(
    `Express Gateway loaded the plugin "${name}", but Tollgate did not start it: start the gateway with Tollgate`,
  );
};

/** Sets the function that runs when Express Gateway calls a manifest's `init`. */
export function initialiseWith(work: Initialise): void {
  initialise = work;
}

/** The version of Express Gateway's plugin engine. A manifest must not require a newer one. */
const ENGINE_VERSION = '1.2.0';

/** The path of this file. Every manifest that this copy of Tollgate makes contains it. */
export const OWN_MANIFESTS = __filename;

/**
 * Returns the manifest of a package with its plugins, policies and adapters. Without `name`, system.config.yml refers to the package by the
 * name of its first plugin, policy or adapter.
 */
export function manifest({ name, ...brought }: Partial<PackageExports> & { readonly name?: string }): Manifest {
  const { plugins = [], policies = [], adapters = [] } = brought;
  const [first] = [...plugins, ...policies, ...adapters];
  const own = name ?? first?.name ?? '';
  const made: Manifest = {
    name: own,
    version: ENGINE_VERSION,
    schema: openSchema(`plugins/${own}`),
    policies: policies.map((policy) => policy.name),
    init: (context) => initialise(made, context),
    tollgate: { plugins, policies, adapters, madeBy: OWN_MANIFESTS },
  };
  return made;
}

/** Returns the manifest of a package that contains one plugin. */
export function pluginManifest(plugin: Plugin): Manifest {
  return manifest({ plugins: [plugin] });
}

/** Returns the manifest of a package that contains policies. */
export function policiesManifest(name: string, policies: readonly Policy[]): Manifest {
  return manifest({ name, policies });
}

/** Returns the schema of a package's settings in system.config.yml. Settings of a single plugin are at the top; several have each under its name. */
export function settingsSchema({ plugins }: Pick<PackageExports, 'plugins'>): Schema {
  const [only, ...others] = plugins;
  if (only !== undefined && others.length === 0) return { additionalProperties: false, ...only.schema };
  const each = plugins.map(({ name, schema }) => [name, { additionalProperties: false, default: {}, ...schema }]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(each) as object };
}

/** Returns a schema that accepts any settings. Tollgate checks them strictly first, because Express Gateway's own check would convert types. */
export function openSchema(id: string): object {
  return { $id: `tollgate/${id}`, type: 'object' };
}
