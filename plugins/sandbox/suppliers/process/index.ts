import { join } from 'node:path';
import { defineSupplier } from '../supplier';
import { ProcessDriver } from './driver';
import { InstanceFolders } from './instance-folder';
import { Launcher } from './launcher';
import { findMeans } from './means';
import { placeOf } from './place';

/** The embedded supplier: it needs no installation and is meant for trying out. */
export const processes = defineSupplier({
  contract: 'supplier/1',
  name: 'process',
  summary: 'Processes of this machine, each instance with a folder of its own; in namespaces where bubblewrap can.',
  schema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      isolation: {
        description: 'Bubblewrap where it is installed and works, always, or never.',
        enum: ['auto', 'bubblewrap', 'none'],
        default: 'auto',
      },
      files: {
        description:
          'Where instances with bubblewrap have their files: in memory, bounded, or on the disk of DATA_DIR, where nothing bounds them.',
        enum: ['memory', 'disk'],
        default: 'memory',
      },
    },
  },
  offeringSchema: { type: 'object', additionalProperties: false, properties: {} },
  open: async ({ isolation, files }, { dataFolder, log }) => {
    const folder = join(dataFolder, 'instances');
    const folders = await InstanceFolders.open(folder);
    const launcher = new Launcher();
    const { problem, ...means } = await findMeans(launcher, folder, isolation !== 'none');
    if (!means.hasNamespaces && isolation === 'bubblewrap')
      throw new Error(`bubblewrap is not installed or does not work here: ${problem}`);
    if (problem !== undefined && isolation !== 'none')
      log.warn({ problem }, 'sandboxes of this supplier run without isolation');
    if (files === 'disk' || !means.hasNamespaces)
      log.warn({ folder }, 'the disk of instances is not bounded: give it a partition or a quota of its own');
    return new ProcessDriver(folders, launcher, means, files, await placeOf(dataFolder));
  },
});
