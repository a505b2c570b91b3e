import { readFileSync, realpathSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { errorCode } from '../base/safe-error';
import { parseDuration } from '../base/settings';
import type { Credential } from '../catalog/upstream';
import type { Nameable } from './nameable';
import type { LocatedProblem } from './problems';
import { type Fetching, fetchingCommand, fetchingFrom, RotatingCredential } from './rotating-credential';
import type { ServiceEndpointSettings } from './schema';

/** The current value of a secret, why there is none yet, or what is wrong with its source. */
type Secret =
  | { readonly value: string }
  | { readonly missing: string }
  | { readonly problem: string; readonly at: 'env' | 'file' };

/** The source of a secret that does not rotate: an environment variable or a file, read once per load of the configuration. */
interface SecretPlace {
  readonly env?: string;
  readonly file?: string;
}

type CredentialSettings = NonNullable<ServiceEndpointSettings['credential']>;

/** The kinds of credential sources; each credential has exactly one kind. */
const KINDS = ['env', 'file', 'command', 'cloud', 'none'] as const;

/** The folder, the environment and the permitted variables for reading secrets. */
interface SecretReading {
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly nameable: Nameable;
}

/** The sources of a configuration's secrets, and the list that receives the problems found. */
export interface CredentialReading extends SecretReading {
  readonly problems: LocatedProblem[];
}

/** Returns an upstream's credentials. Adds mistakes to `problems`; a credential that cannot be read has no value. */
export function readCredentials(
  path: readonly string[],
  { credential, credentials }: Pick<ServiceEndpointSettings, 'credential' | 'credentials'>,
  reading: CredentialReading,
): readonly [Credential, ...Credential[]] {
  const { problems } = reading;
  if ((credential === undefined) === (credentials === undefined)) {
    const message =
      credential === undefined
        ? '"credential" is missing'
        : 'has both `credential` and `credentials`: keep one of them';
    problems.push({ path, message });
  }
  const one = credential === undefined ? [] : [{ settings: credential, at: [...path, 'credential'] }];
  const several = credentials?.map((settings, index) => ({ settings, at: [...path, 'credentials', index] }));
  const names = new Set<string>();
  const [first = ABSENT, ...others] = (several ?? one).map(({ settings, at }) => {
    const read = readOne(at, settings, reading);
    if (names.has(read.name))
      problems.push({ path: at, message: `the name "${read.name}" is used twice; rename one of them` });
    names.add(read.name);
    return read;
  });
  return [first, ...others];
}

const ABSENT: Credential = { name: '', weight: 1, value: undefined, missing: undefined };

function readOne(path: LocatedProblem['path'], settings: CredentialSettings, reading: CredentialReading): Credential {
  const { problems } = reading;
  const { weight = 1, refreshEvery, command, cloud } = settings;
  const kinds = KINDS.filter((kind) => settings[kind] !== undefined);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    problems.push({ path, message: `expected one of ${KINDS.join(', ')}` });
    return ABSENT;
  }
  const name = settings.name ?? nameOf(settings);
  if (refreshEvery !== undefined && command === undefined && cloud === undefined)
    problems.push({
      path: [...path, 'refreshEvery'],
      message: 'is valid only for a credential that has `command` or `cloud`',
    });
  if (kind === 'none') return { name, weight, value: '', missing: undefined };
  if (command === undefined && cloud === undefined) {
    const secret = readSecret(settings, reading);
    if ('problem' in secret) problems.push({ path: [...path, secret.at], message: secret.problem });
    return {
      name,
      weight,
      value: 'value' in secret ? secret.value : undefined,
      missing: 'missing' in secret ? secret.missing : undefined,
    };
  }
  const fetching = cloud === undefined ? readCommand(path, command ?? [], reading) : fetchingFrom(cloud);
  return new RotatingCredential(name, weight, fetching, parseDuration(refreshEvery ?? REFRESH_EVERY));
}

/**
 * Reads a command. Its program must be in the folder of credentials, so that an operator who may change the configuration cannot
 * run any program of the machine.
 */
function readCommand(
  path: LocatedProblem['path'],
  [program = '', ...args]: readonly string[],
  { folder, env, problems }: CredentialReading,
): Fetching {
  const inside = pathInside(program, folder, env);
  if (inside === undefined) {
    const message = `${program} is outside the credentials folder; move the program there, or set CREDENTIALS_DIR`;
    problems.push({ path: [...path, 'command'], message });
  }
  return fetchingCommand([inside ?? program, ...args], folder, env);
}

const REFRESH_EVERY = '10m';

/** Returns the source of a credential, never its value. */
function nameOf({ env, file, command, cloud }: CredentialSettings): string {
  if (env !== undefined) return `env ${env}`;
  if (file !== undefined) return `file ${file}`;
  if (command !== undefined) return `command ${command[0] ?? ''}`;
  return cloud === undefined ? 'none' : `cloud ${cloud}`;
}

/** Reads a secret from a variable or file. Refuses files outside of the credentials folder, and variables that the configuration may not name. */
export function readSecret({ env: name, file = '' }: SecretPlace, { folder, env, nameable }: SecretReading): Secret {
  return name === undefined ? readFromFile(file, folder, env) : readFromEnvironment(name, env, nameable);
}

function readFromEnvironment(name: string, env: NodeJS.ProcessEnv, nameable: Nameable): Secret {
  const problem = nameable.credential(name);
  if (problem !== undefined) return { problem, at: 'env' };
  const value = env[name]?.trim() ?? '';
  return value === '' ? { missing: `${name} is not set` } : { value };
}

function readFromFile(file: string, configFolder: string, env: NodeJS.ProcessEnv): Secret {
  const path = pathInside(file, configFolder, env);
  if (path === undefined) {
    const problem = `${file} is outside the credentials folder; move the file there, or set CREDENTIALS_DIR`;
    return { problem, at: 'file' };
  }
  try {
    const value = readFileSync(path, 'utf8').trim();
    return value === '' ? { missing: `the credential file ${file} is empty` } : { value };
  } catch (error) {
    const code = errorCode(error, 'unreadable');
    if (code === 'ENOENT') return { missing: `the credential file ${file} is missing` };
    return { problem: `${file} cannot be read (${code})`, at: 'file' };
  }
}

/** Returns the path of a file in the folder of credentials; undefined for a path outside of it. The file need not exist. */
function pathInside(file: string, configFolder: string, env: NodeJS.ProcessEnv): string | undefined {
  const folder = resolve(configFolder, env['CREDENTIALS_DIR'] || '.');
  const path = resolve(folder, file);
  // The path is checked before the file is accessed, so that the result reveals nothing about files outside of the folder.
  if (!isWithin(folder, path) || isHidden(folder, path)) return undefined;
  try {
    const real = realpathSync(path);
    return isWithin(realpathSync(folder), real) && !isInDataFolder(real, env) ? real : undefined;
  } catch {
    return path;
  }
}

function isWithin(folder: string, path: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

/**
 * Whether a credential's file is hidden or in a hidden folder, such as `.tollgate`, `.env` or `.git`. The default credentials folder, the
 * configuration's own, may contain them.
 */
function isHidden(folder: string, path: string): boolean {
  return relative(folder, path)
    .split(sep)
    .some((part) => part.startsWith('.'));
}

function isInDataFolder(real: string, env: NodeJS.ProcessEnv): boolean {
  const dataFolder = env['DATA_DIR'] ?? '';
  return dataFolder !== '' && isWithin(resolve(dataFolder), real);
}
