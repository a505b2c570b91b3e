import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Route } from '../../core/api/route';
import { compileCheck } from '../../core/base/settings';
import type { Plugin } from '../../core/gateway/plugin';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';

const PLUGINS = join(__dirname, '../../plugins');

/** Lists every endpoint of Tollgate's own API, as the project's plugins declare them. New plugins are included. */
export function ownRoutes(): readonly Route[] {
  return readdirSync(PLUGINS).flatMap((folder) => {
    const plugin = (require(join(PLUGINS, folder)) as { default: Plugin }).default;
    const settings = compileCheck(plugin.schema)({});
    if ('problems' in settings) throw new Error(`plugin ${folder} cannot be made without settings`);
    return plugin.routes?.(settings.value, anything as PluginGateway) ?? [];
  });
}

/** Replaces everything that routes use of the gateway, because here they are only listed. */
const anything: unknown = new Proxy(() => anything, {
  get: (_target, name) => (typeof name === 'symbol' ? undefined : anything),
  apply: () => anything,
  construct: () => anything as object,
});

/** Returns a name such as `POST /admin/v1/accounts`. */
export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** Returns the path with its `{names}` replaced. */
export function fill(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)(?:\.\.\.)?\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${path}: this test does not know a {${name}}; give it one`);
    return encodeURIComponent(value);
  });
}
