import { join } from 'node:path';
import { compileCheck } from '../settings';
import { locate, withHint } from './problems';
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
