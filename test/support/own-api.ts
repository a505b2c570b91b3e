import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Route } from '../../core/api/route';
import type { Plugin } from '../../core/gateway/plugin';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { compileCheck } from '../../core/settings';

const PLUGINS = join(__dirname, '../../plugins');

/** Every endpoint of our own API, as the plugins of this project declare it: what a new plugin adds is in it by itself. */
export function ownRoutes(): readonly Route[] {
  return readdirSync(PLUGINS).flatMap((folder) => {
    const plugin = (require(join(PLUGINS, folder)) as { default: Plugin }).default;
    const settings = compileCheck(plugin.schema)({});
    if ('problems' in settings) throw new Error(`plugin ${folder} cannot be made without settings`);
    return plugin.routes?.(settings.value, anything as PluginGateway) ?? [];
  });
}

/** Routes are only looked at here: whatever they ask of the gateway while they are made, they are given. */
const anything: unknown = new Proxy(() => anything, {
  get: (_target, name) => (typeof name === 'symbol' ? undefined : anything),
  apply: () => anything,
  construct: () => anything as object,
});

/** `POST /admin/v1/accounts` */
export function nameOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

/** The path with its `{names}` replaced. */
export function fill(path: string, values: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)(?:\.\.\.)?\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`${path}: this test does not know a {${name}}; give it one`);
    return encodeURIComponent(value);
  });
}
