import type { IncomingMessage, ServerResponse } from 'node:http';
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

/** What a plugin's `manifest.ts` exports. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly schema: object;
  readonly policies: readonly string[];
  readonly init: (context: PluginContext) => void;
  /** Ours, beside what Express Gateway reads. */
  readonly tollgate: { readonly plugin?: Plugin; readonly policies?: readonly Policy[] };
}

type Initialise = (manifest: Manifest, context: PluginContext) => void;

let initialise: Initialise = ({ name }) => {
  throw new Error(`the plugin "${name}" was loaded by an Express Gateway that Tollgate has not started`);
};

/** Sets what runs when Express Gateway calls a manifest's `init`. */
export function initialiseWith(work: Initialise): void {
  initialise = work;
}

/** Returns the manifest of a plugin, for its `manifest.ts` to export. */
export function pluginManifest(plugin: Plugin): Manifest {
  return manifestOf(plugin.name, [], { plugin });
}

/** Returns the manifest of a set of policies. */
export function policiesManifest(name: string, policies: readonly Policy[]): Manifest {
  return manifestOf(
    name,
    policies.map((policy) => policy.name),
    { policies },
  );
}

/** Express Gateway's plugin engine; a manifest must not ask for a newer one. */
const ENGINE_VERSION = '1.2.0';

function manifestOf(name: string, policies: readonly string[], tollgate: Manifest['tollgate']): Manifest {
  const manifest: Manifest = {
    name,
    version: ENGINE_VERSION,
    schema: openSchema(`plugins/${name}`),
    policies,
    init: (context) => initialise(manifest, context),
    tollgate,
  };
  return manifest;
}

/** Settings are checked by us, strictly, before Express Gateway sees them; its own check would coerce. */
export function openSchema(id: string): object {
  return { $id: `tollgate/${id}`, type: 'object' };
}
