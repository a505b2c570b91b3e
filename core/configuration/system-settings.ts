import { join } from 'node:path';
import { compileCheck } from '../base/settings';
import { isWithin, readAddressRange } from '../http/address-ranges';
import { isPrivate, type Proxies } from '../http/proxies';
import { type LocatedProblem, locate, withHint } from './problems';
import { SYSTEM_SCHEMA, type SystemSettings } from './schema';
import { ConfigurationError, readYamlFile, type YamlFile } from './yaml-file';

const check = compileCheck<SystemSettings>(SYSTEM_SCHEMA);

/** Reads system.config.yml: the plugins to load, with their settings. @throws ConfigurationError */
export function readSystemSettings(
  folder: string,
  env: NodeJS.ProcessEnv,
): { readonly settings: SystemSettings; readonly file: YamlFile } {
  const file = readYamlFile(join(folder, 'system.config.yml'), env);
  const checked = check(file.value ?? {});
  if ('problems' in checked) throw new ConfigurationError(locate(file, checked.problems.map(withHint)));
  return { settings: checked.value, file };
}

/**
 * Reads `proxies` of system.config.yml, and adds mistakes to the problems. If neither count nor addresses are set, no address counts as a
 * proxy. If only the count is set, loopback and private addresses count as proxies.
 */
export function readProxies({ proxies }: Pick<SystemSettings, 'proxies'>, problems: LocatedProblem[]): Proxies {
  const { count = 0, addresses } = proxies;
  if (addresses === undefined) return { count, isProxy: count > 0 ? isPrivate : () => false };
  const ranges = addresses.flatMap((text, index) => {
    const range = readAddressRange(text);
    if (range !== undefined) return [range];
    problems.push({
      path: ['proxies', 'addresses', index],
      message: `${text} is neither an IP address nor a range such as 10.0.0.0/8`,
    });
    return [];
  });
  return { count, isProxy: (address) => isWithin(address, ranges) };
}
