import { readFileSync, realpathSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { isOwnSecret } from './own-secrets';
import type { ServiceEndpointSettings } from './schema';

/** The credential of an upstream, why there is none yet, or what is wrong with where it should be. */
export type Credential =
  | { readonly value: string }
  | { readonly missing: string }
  | { readonly problem: string; readonly at: 'env' | 'file' };

/** Reads a credential from where the configuration says it is; a configuration must not reach any file or secret of the machine. */
export function readCredential(
  { env: name, file = '' }: ServiceEndpointSettings['credential'],
  configFolder: string,
  env: NodeJS.ProcessEnv,
): Credential {
  return name === undefined ? readFromFile(file, configFolder, env) : readFromEnvironment(name, env);
}

/** Returns the name of a credential: where it is, without what it is. */
export function credentialName({ env, file = '' }: ServiceEndpointSettings['credential']): string {
  return env === undefined ? `file ${file}` : `env ${env}`;
}

function readFromEnvironment(name: string, env: NodeJS.ProcessEnv): Credential {
  if (isOwnSecret(name)) return { problem: `${name} is a secret of the gateway itself; use another name`, at: 'env' };
  const value = env[name]?.trim() ?? '';
  return value === '' ? { missing: `${name} is not set` } : { value };
}

function readFromFile(file: string, configFolder: string, env: NodeJS.ProcessEnv): Credential {
  const folder = resolve(configFolder, env['CREDENTIALS_DIR'] || '.');
  const outside: Credential = {
    problem: `${file} is not in the folder of credentials; put it there, or set CREDENTIALS_DIR`,
    at: 'file',
  };
  const path = resolve(folder, file);
  // Before it is looked for, so that nothing is told of files elsewhere.
  if (!isWithin(folder, path) || isHidden(folder, path)) return outside;
  try {
    const real = realpathSync(path);
    if (!isWithin(realpathSync(folder), real) || isInDataFolder(real, env)) return outside;
    const value = readFileSync(real, 'utf8').trim();
    return value === '' ? { missing: `the credential file ${file} is empty` } : { value };
  } catch (error) {
    const reason = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    if (reason === 'ENOENT') return { missing: `the credential file ${file} is missing` };
    return { problem: `${file} cannot be read (${reason})`, at: 'file' };
  }
}

function isWithin(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

/** `.tollgate` with the admin token, `.env`, `.git`: the default folder is the configuration's, where such may be. */
function isHidden(folder: string, path: string): boolean {
  return relative(folder, path)
    .split(sep)
    .some((part) => part.startsWith('.'));
}

function isInDataFolder(real: string, env: NodeJS.ProcessEnv): boolean {
  const dataFolder = env['DATA_DIR'] ?? '';
  return dataFolder !== '' && isWithin(resolve(dataFolder), real);
}
