import type { OwnHosts, Route } from '../api/route';
import { RouteTable } from '../api/route-table';
import type { Stop } from '../base/resources';
import { StartFailure } from '../base/start-failure';
import { ownerNumber, within } from '../base/watchdog';
import { withTimeout } from '../base/with-timeout';
import type { EndpointSettings } from '../configuration/pipelines';
import type { PluginGateway } from '../gateway/plugin-gateway';
import type { LoadedPlugin } from './load-plugins';

/** How long a plugin may take to start. If it takes longer, the process ends with an error that names the plugin. */
const STARTS_WITHIN_MS = 60_000;

/**
 * Returns the endpoints of all plugins, each made with its settings.
 * @throws StartFailure that names the plugin if it throws, and both plugins if two endpoints collide
 */
export function routesOf(plugins: readonly LoadedPlugin[], gateway: PluginGateway): readonly Route[] {
  const owners = new Map<Route, LoadedPlugin>();
  for (const loaded of plugins) {
    const { plugin, settings } = loaded;
    const own = ask(loaded, 'routes', () => plugin.routes?.(settings, gateway) ?? []);
    for (const route of own) owners.set(route, loaded);
  }
  refuseTwins(owners);
  const endpoints = gateway.configuration.pipelines.flatMap((pipeline) => pipeline.endpoints);
  refuseCallPaths(owners, endpoints);
  return [...owners.keys()];
}

/** Returns the hosts that plugins answer for. @throws StartFailure that names the plugin if it throws */
export function hostsOf(plugins: readonly LoadedPlugin[], gateway: PluginGateway): readonly OwnHosts[] {
  return plugins.flatMap((loaded) => ask(loaded, 'hosts', () => loaded.plugin.hosts?.(loaded.settings, gateway) ?? []));
}

/**
 * Starts the background work of the plugins. Returns a function that stops the plugins in reverse order.
 * @throws StartFailure that names the plugin if it throws or does not start in time
 */
export async function startPlugins(
  plugins: readonly LoadedPlugin[],
  gateway: PluginGateway,
  withinMs = STARTS_WITHIN_MS,
): Promise<Stop> {
  const stops: (() => Promise<void>)[] = [];
  for (const loaded of plugins) {
    const { plugin, settings } = loaded;
    const stop = await startInTime(loaded, withinMs, async () => plugin.start?.(settings, gateway));
    if (stop !== undefined) stops.unshift(stop);
  }
  return async () => {
    for (const stop of stops) await stop();
  };
}

function ask<T>(loaded: LoadedPlugin, place: string, work: () => T): T {
  try {
    return within(ownerNumber(`plugin ${loaded.plugin.name}`), work);
  } catch (cause) {
    throw fault(loaded, place, cause);
  }
}

async function startInTime<T>(loaded: LoadedPlugin, withinMs: number, start: () => Promise<T>): Promise<T> {
  const late = () =>
    new StartFailure(
      `The plugin ${placeOf(loaded)} has not started within ${withinMs / 1_000} s: its \`start\` must resolve as soon as its work has begun.`,
    );
  try {
    return await withTimeout(within(ownerNumber(`plugin ${loaded.plugin.name}`), start), withinMs, late);
  } catch (cause) {
    throw fault(loaded, 'start', cause);
  }
}

/** Returns the error for a plugin that failed. A StartFailure stays as it is, because it already says what to do. */
function fault(plugin: LoadedPlugin, place: string, cause: unknown): StartFailure {
  if (cause instanceof StartFailure) return cause;
  const reason = cause instanceof Error ? (cause.stack ?? cause.message) : String(cause);
  return new StartFailure(`The plugin ${placeOf(plugin)} failed in \`${place}\`: ${reason}`);
}

/** Returns the plugin's name, its package, and the file that names both. */
function placeOf({ plugin: { name }, package: packageName }: LoadedPlugin): string {
  return `"${name}" (${packageName} in system.config.yml)`;
}

/**
 * Rejects two routes that answer the same requests. Within one plugin, a literal may overlap a `{name}`, because the literal wins. Between
 * two plugins, the literal would take requests away from the other plugin.
 */
function refuseTwins(owners: ReadonlyMap<Route, LoadedPlugin>): void {
  const known: [Route, LoadedPlugin][] = [];
  for (const [route, owner] of owners) {
    const { listener, method, path } = route;
    const twin = known.find(([other, otherOwner]) => answerAlike(route, other, owner === otherOwner));
    if (twin !== undefined) {
      const [other, otherOwner] = twin;
      const as = other.path === path ? '' : `, one as ${other.method} ${other.path}`;
      throw new StartFailure(
        `The plugins ${placeOf(otherOwner)} and ${placeOf(owner)} both answer ${method} ${path}${as} (${listener} listener).`,
      );
    }
    known.push([route, owner]);
  }
}

const ANY_METHOD = '*';
const NAMED = /^\{\w+\}$/;

/**
 * Returns whether two routes may answer the same path. Two routes of one plugin conflict only if their paths are equal. `{name...}` may
 * overlap other routes, because it only answers what no other route answers.
 */
function answerAlike(one: Route, other: Route, isOfOne: boolean): boolean {
  const isSameMethod = one.method === other.method || (!isOfOne && [one.method, other.method].includes(ANY_METHOD));
  if (one.listener !== other.listener || !isSameMethod) return false;
  const [segments, others] = [segmentsOf(one), segmentsOf(other)];
  if (segments.length !== others.length) return false;
  return segments.every((segment, at) => {
    const counterpart = others[at] ?? '';
    return segment === counterpart || (!isOfOne && [segment, counterpart].some((each) => NAMED.test(each)));
  });
}

function segmentsOf({ path }: Route): readonly string[] {
  return path.replace(/\{\w+/g, '{name').split('/');
}

/** Rejects a plugin's route at an address of model calls. The gateway looks up calls before routes, so it would never reach the route. */
function refuseCallPaths(owners: ReadonlyMap<Route, LoadedPlugin>, endpoints: readonly EndpointSettings[]): void {
  for (const [route, owner] of owners) {
    if (route.listener !== 'public') continue;
    const table = new RouteTable<Route>();
    table.add(route.method, route.path, route);
    for (const { name, host, paths, methods = [route.method] } of endpoints) {
      if (host !== undefined && host !== '*') continue;
      const path = paths.find((each) => methods.some((method) => isRoute(table.find(method, each))));
      if (path === undefined) continue;
      throw new StartFailure(
        `The plugin ${placeOf(owner)} answers ${route.method} ${route.path}, and so does the endpoint "${name}" of gateway.config.yml with ${path}.`,
      );
    }
  }
}

function isRoute(found: ReturnType<RouteTable<Route>['find']>): boolean {
  return found !== undefined && 'route' in found;
}
