import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { configurationReader } from '../../../core/configuration/configuration';
import { ConfigurationError } from '../../../core/configuration/yaml-file';
import { loadPlugins } from '../../../core/serving/load-plugins';
import { textOf } from '../../support/sources';
import { mutateBytes } from '../mutate';
import type { Target } from './target';

let read: ((text: string) => unknown) | undefined;

/** Loads configurations, which must be valid or refused with problems, and never throw another error. */
export const yaml: Target = {
  name: 'yaml',
  summary: 'gateway.config.yml',
  isOfGateway: false,
  run: async (_, random) => {
    read ??= await openReader();
    const text = mutateBytes(random, Buffer.from(textOf('gateway.config.yml'))).toString('utf8');
    try {
      read(text);
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
    }
  },
};

async function openReader(): Promise<(text: string) => unknown> {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-fuzz-'));
  await writeFile(join(folder, 'system.config.yml'), textOf('system.config.yml'));
  await writeFile(join(folder, 'gateway.config.yml'), textOf('gateway.config.yml'));
  const reader = configurationReader(loadPlugins(folder, process.env));
  process.once('exit', () => void rm(folder, { recursive: true, force: true }));
  return (text) => reader(folder, {}, text);
}
