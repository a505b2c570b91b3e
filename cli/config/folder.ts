import type { Environment } from '../client';

/** Where the YAML files are: as it is said, as the gateway would be told, or here. */
export function folderOf(given: string | undefined, environment: Environment): string {
  return given ?? (environment['TOLLGATE_CONFIG_DIR'] || '.');
}
