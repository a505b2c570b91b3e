import type { Environment } from '../client';

/** Returns the folder of the YAML files: the given one, or that of TOLLGATE_CONFIG_DIR, or the current one. */
export function folderOf(given: string | undefined, environment: Environment): string {
  return given ?? (environment['TOLLGATE_CONFIG_DIR'] || '.');
}
