import type { LoadedPlugin } from './load-plugins';

/** Returns how many proxies stand in front of this process, by the setting `proxies` of the plugins that trust them. */
export function proxiesInFront(plugins: readonly Pick<LoadedPlugin, 'settings'>[]): number {
  const said = plugins.map(({ settings }) => (settings as { readonly proxies?: unknown }).proxies);
  return Math.max(0, ...said.filter((each) => typeof each === 'number'));
}
