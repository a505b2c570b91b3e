import { join } from 'node:path';
import { defineSupplier } from '../../../../core/supplier';
import { ProcessDriver } from './driver';
import { InstanceFolders } from './instance-folder';
import { canBubblewrap } from './isolation';

/** Embedded: nothing to install, for trying out. Processors and memory are as the offering says only if nobody takes more. */
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
  open: async ({ isolation }, { dataFolder }) => {
    const folder = join(dataFolder, 'instances');
    const folders = await InstanceFolders.open(folder);
    const hasBubblewrap = isolation !== 'none' && (await canBubblewrap(folder));
    if (!hasBubblewrap && isolation === 'bubblewrap')
      throw new Error('bubblewrap is not installed or does not work here');
    return new ProcessDriver(folders, hasBubblewrap);
  },
});
