import { join } from 'node:path';
import { type Configuration, configurationReader } from '../configuration/configuration';
import { BY_FILE } from '../configuration/nameable';
import { ConfigurationError, type ConfigurationProblem, parseYamlFile } from '../configuration/yaml-file';
import { type LoadedPlugins, loadPlugins } from './load-plugins';
import { openCertificates } from './tls';

interface Validation {
  readonly problems: readonly ConfigurationProblem[];
  /** Valid settings that are perhaps unintended: upstreams without a credential. */
  readonly warnings: readonly ConfigurationProblem[];
  /** The checked configuration; undefined if there are problems. */
  readonly configuration: Configuration | undefined;
}

/** Checks gateway.config.yml and system.config.yml of a folder without starting anything. */
export function validateConfiguration(folder: string, env: NodeJS.ProcessEnv): Validation {
  let loaded: LoadedPlugins;
  try {
    loaded = loadPlugins(folder, env);
  } catch (error) {
    // Without its plugins, gateway.config.yml can only be checked for valid YAML.
    const others = problemsOf(() => parseYamlFile(join(folder, 'gateway.config.yml'), env, BY_FILE));
    return { problems: [...problemsIn(error), ...others], warnings: [], configuration: undefined };
  }
  let configuration: Configuration | undefined;
  const problems = problemsOf(() => {
    const read = configurationReader(loaded)(folder, env);
    openCertificates(read, folder);
    configuration = read;
  });
  return { problems, warnings: configuration?.warnings ?? [], configuration };
}

function problemsOf(work: () => unknown): readonly ConfigurationProblem[] {
  try {
    work();
    return [];
  } catch (error) {
    return problemsIn(error);
  }
}

function problemsIn(error: unknown): readonly ConfigurationProblem[] {
  if (error instanceof ConfigurationError) return error.problems;
  throw error;
}
