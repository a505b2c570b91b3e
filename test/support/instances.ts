import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { endHolderOf } from '../../plugins/sandbox/suppliers/process/holder';
import type { Instance } from '../../plugins/sandbox/suppliers/process/instance-folder';

/** Ends the sandbox instances of gateways with this data folder, because they outlive a gateway. */
export async function endInstances(dataFolder: string): Promise<void> {
  const suppliers = await namesIn(join(dataFolder, 'suppliers'));
  for (const supplier of suppliers) await endInstancesOf(join(dataFolder, 'suppliers', supplier));
}

/** Ends the instances of one supplier. */
export async function endInstancesOf(supplierFolder: string): Promise<void> {
  const instances = join(supplierFolder, 'instances');
  for (const name of await namesIn(instances)) {
    const text = await readFile(join(instances, name, 'instance.json'), 'utf8').catch(() => '{}');
    await endHolderOf(JSON.parse(text) as Partial<Instance>);
  }
}

function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}
