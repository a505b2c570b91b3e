import { keepPartitions } from '../../core/ledger/partitions';
import { definePlugin } from '../../core/plugin';

const LOOK_EVERY_MS = 3_600_000;

export default definePlugin({
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
    let keeping: Promise<unknown> = Promise.resolve();
    const timer = setInterval(() => {
      keeping = keep().catch((error) => log.error({ reason: String(error) }, 'partitions cannot be looked after now'));
    }, LOOK_EVERY_MS);
    timer.unref();
    return async () => {
      clearInterval(timer);
      await keeping;
    };
  },
});
