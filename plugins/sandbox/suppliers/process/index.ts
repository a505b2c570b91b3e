import { join } from 'node:path';
import { defineSupplier } from '../../../../core/supplier';
import { ProcessDriver } from './driver';
import { InstanceFolders } from './instance-folder';
import { findMeans } from './means';

/** Embedded: nothing to install, for trying out. */
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
    },
  },
  offeringSchema: { type: 'object', additionalProperties: false, properties: {} },
  open: async ({ isolation }, { dataFolder, log }) => {
    const folder = join(dataFolder, 'instances');
    const folders = await InstanceFolders.open(folder);
    const { problem, ...means } = await findMeans(folder, isolation !== 'none');
    if (!means.hasNamespaces && isolation === 'bubblewrap')
      throw new Error(`bubblewrap is not installed or does not work here: ${problem}`);
    if (problem !== undefined && isolation !== 'none')
      log.warn({ problem }, 'sandboxes of this supplier are not isolated');
    return new ProcessDriver(folders, means);
  },
});
