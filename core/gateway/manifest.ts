import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Schema } from '../base/settings';
import type { AdapterExport } from '../catalog/upstream';
import type { Plugin } from './plugin';
import type { Policy } from './policy';

export type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

/** The object that Express Gateway gives to a manifest's `init`. */
interface PluginContext {
  registerPolicy(policy: ExpressGatewayPolicy): void;
}

export interface ExpressGatewayPolicy {
  readonly name: string;
  readonly schema: object;
  readonly policy: (action: Record<string, unknown>) => Middleware;
}

/** The plugins, policies and adapters of one package. */
export interface Brought {
  readonly plugins: readonly Plugin[];
  readonly policies: readonly Policy[];
  readonly adapters: readonly AdapterExport[];
}

/** The export of the file that system.config.yml names. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly schema: object;
  readonly policies: readonly string[];
  readonly init: (context: PluginContext) => void;
  /** Tollgate's part, which Express Gateway does not read. */
  readonly tollgate: Brought & {
    /**
     * The path of the Tollgate file that made the manifest. A package with another copy of Tollgate would register its parts where
     * no gateway reads them.
     */
    readonly madeBy: string;
  };
}

type Initialise = (manifest: Manifest, context: PluginContext) => void;

let initialise: Initialise = ({ name }) => {
  throw new Error(`the plugin "${name}" was loaded by an Express Gateway that Tollgate has not started`);
};

/** Sets the function that runs when Express Gateway calls a manifest's `init`. */
export function initialiseWith(work: Initialise): void {
  initialise = work;
}

/** The version of Express Gateway's plugin engine. A manifest must not require a newer one. */
const ENGINE_VERSION = '1.2.0';

/** The path of this file, which every manifest of this copy of Tollgate contains. */
export const OWN_MANIFESTS = __filename;

/**
 * Returns the manifest of a package with its plugins, policies and adapters. Its name in system.config.yml is that of the first of
 * them, unless another is given.
 */
export function manifest({ name, ...brought }: Partial<Brought> & { readonly name?: string }): Manifest {
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

/** Returns the schema of a package's settings in system.config.yml. One plugin has them at the top; several have each under its name. */
export function settingsSchema({ plugins }: Pick<Brought, 'plugins'>): Schema {
  const [only, ...others] = plugins;
  if (only !== undefined && others.length === 0) return { additionalProperties: false, ...only.schema };
  const each = plugins.map(({ name, schema }) => [name, { additionalProperties: false, default: {}, ...schema }]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(each) as object };
}

/** Returns a schema that accepts any settings. Tollgate checks them strictly before; Express Gateway's own check would convert types. */
export function openSchema(id: string): object {
  return { $id: `tollgate/${id}`, type: 'object' };
}
