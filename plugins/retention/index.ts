import { definePlugin } from '../../core/gateway/plugin';
import { keepPartitions } from '../../core/ledger/outbox/partitions';
import { startLoop } from '../../core/loop';

const LOOK_EVERY_MS = 3_600_000;

export default definePlugin({
  contract: 'plugin/1',
  name: 'retention',
  summary: 'Makes the months of the tables that grow with every call ahead of time, and drops those that are past.',
  schema: {
    type: 'object',
    properties: {
      usageMonths: {
        description: 'Usage records are kept for this many whole months beside the current one; absent: for ever.',
        type: 'integer',
        minimum: 1,
      },
      entryMonths: {
        description:
          "Entries of the ledger likewise; a checkpoint of each account's chain takes their place. Absent: for ever.",
        type: 'integer',
        minimum: 1,
      },
    },
  },
  start: async ({ usageMonths, entryMonths }, { database, log }) => {
    const keep = () => keepPartitions({ database, log, usageMonths, entryMonths });
    await keep();
    return startLoop(keep, {
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: LOOK_EVERY_MS,
      whenFailed: (error) => log.error({ reason: String(error) }, 'partitions cannot be looked after now'),
    }).stop;
  },
});
