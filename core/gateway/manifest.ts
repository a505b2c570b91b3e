import type { IncomingMessage, ServerResponse } from 'node:http';
import type { BroughtAdapter } from '../catalog/upstream';
import type { Schema } from '../settings';
import type { Plugin } from './plugin';
import type { Policy } from './policy';

export type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void;

/** What Express Gateway gives a manifest's `init`. */
export interface PluginContext {
  registerPolicy(policy: ExpressGatewayPolicy): void;
}

export interface ExpressGatewayPolicy {
  readonly name: string;
  readonly schema: object;
  readonly policy: (action: Record<string, unknown>) => Middleware;
}

/** All that one package brings. */
export interface Brought {
  readonly plugins: readonly Plugin[];
  readonly policies: readonly Policy[];
  readonly adapters: readonly BroughtAdapter[];
}

/** What the file that system.config.yml names exports. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly schema: object;
  readonly policies: readonly string[];
  readonly init: (context: PluginContext) => void;
  /** Ours, beside what Express Gateway reads. */
  readonly tollgate: Brought & {
    /** The file of Tollgate that has made it: that of another copy registers what nobody asks. */
    readonly madeBy: string;
  };
}

type Initialise = (manifest: Manifest, context: PluginContext) => void;

let initialise: Initialise = ({ name }) => {
  throw new Error(`the plugin "${name}" was loaded by an Express Gateway that Tollgate has not started`);
};

/** Sets what runs when Express Gateway calls a manifest's `init`. */
export function initialiseWith(work: Initialise): void {
  initialise = work;
}

/** Express Gateway's plugin engine; a manifest must not ask for a newer one. */
const ENGINE_VERSION = '1.2.0';

/** This file, as every manifest of this copy of Tollgate says it. */
export const OWN_MANIFESTS = __filename;

/**
 * Returns the manifest of a package: its plugins, policies and adapters together. Its name, which stands in system.config.yml, is that of
 * the first it brings unless another is given.
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

/** Returns the manifest of a package that brings one plugin. */
export function pluginManifest(plugin: Plugin): Manifest {
  return manifest({ plugins: [plugin] });
}

/** Returns the manifest of a package that brings policies. */
export function policiesManifest(name: string, policies: readonly Policy[]): Manifest {
  return manifest({ name, policies });
}

/** The settings of a package in system.config.yml: those of its plugin; of several, each one's under its name. */
export function settingsSchema({ plugins }: Pick<Brought, 'plugins'>): Schema {
  const [only, ...others] = plugins;
  if (only !== undefined && others.length === 0) return { additionalProperties: false, ...only.schema };
  const each = plugins.map(({ name, schema }) => [name, { additionalProperties: false, default: {}, ...schema }]);
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(each) as object };
}

/** Settings are checked by us, strictly, before Express Gateway sees them; its own check would coerce. */
export function openSchema(id: string): object {
  return { $id: `tollgate/${id}`, type: 'object' };
}
