import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Configuration } from './configuration';

/** Returns the parts of the files that have changed since the start and that only a restart can apply. */
export type RestartNeeded = (current: Configuration) => readonly string[];

export function restartNeededSince(first: Configuration, configFolder: string): RestartNeeded {
  const path = join(configFolder, 'system.config.yml');
  const system = textOf(path);
  return (current) => [
    ...(textOf(path) === system ? [] : ['system.config.yml']),
    ...(['http', 'https', 'admin'] as const)
      .filter((part) => !isDeepStrictEqual(current.gateway[part], first.gateway[part]))
      .map((part) => `gateway.config.yml: ${part}`),
  ];
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
