import { isDeepStrictEqual } from 'node:util';
import { isWithin, readAddressRange } from '../http/address-ranges';
import type { Proxies } from '../http/proxies';
import type { LocatedProblem } from './problems';
import type { SystemSettings } from './schema';

/** The default addresses of proxies: loopback and the private ranges. */
const USUAL_ADDRESSES = ['127.0.0.0/8', '::1', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7'];

/** A plugin's name and its checked settings. */
interface PluginSettings {
  readonly plugin: { readonly name: string };
  readonly settings: unknown;
}

/** Reads `proxies` of system.config.yml, or its parts by their old names. Adds mistakes to the problems. */
export function readProxies(
  { proxies, connections }: Pick<SystemSettings, 'proxies' | 'connections'>,
  plugins: readonly PluginSettings[],
  problems: LocatedProblem[],
): Proxies {
  const ofConsole = plugins.find(({ plugin }) => plugin.name === 'console')?.settings;
  const { proxies: oldCount } = (ofConsole ?? {}) as { readonly proxies?: number };
  const { value: count = 0 } = either(
    { path: ['proxies', 'count'], value: proxies.count },
    { path: ['plugins', 'console', 'proxies'], value: oldCount },
    problems,
  );
  const { path, value: addresses = USUAL_ADDRESSES } = either(
    { path: ['proxies', 'addresses'], value: proxies.addresses },
    { path: ['connections', 'proxies'], value: connections.proxies },
    problems,
  );
  const ranges = addresses.flatMap((text, index) => {
    const range = readAddressRange(text);
    if (range !== undefined) return [range];
    problems.push({
      path: [...path, index],
      message: `${text} is neither an IP address nor a range such as 10.0.0.0/8`,
    });
    return [];
  });
  return { count, isProxy: (address) => isWithin(address, ranges) };
}

interface Setting<T> {
  readonly path: readonly string[];
  readonly value: T | undefined;
}

/** Returns the value of a setting with two names. The two must not differ. */
function either<T>(name: Setting<T>, oldName: Setting<T>, problems: LocatedProblem[]): Setting<T> {
  if (oldName.value === undefined) return name;
  if (name.value !== undefined && !isDeepStrictEqual(name.value, oldName.value)) {
    const message = `this is the old name of ${name.path.join('.')}, which has another value; remove this one`;
    problems.push({ path: [...oldName.path], message });
  }
  return oldName;
}
