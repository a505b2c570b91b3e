import { startLoop } from '../../core/base/loop';
import { integer } from '../../core/base/setting-schemas';
import { deleteOldEvents } from '../../core/events/feed';
import { definePlugin } from '../../core/gateway/plugin';
import { keepPartitions } from '../../core/ledger/outbox/partitions';

const LOOK_EVERY_MS = 3_600_000;

export default definePlugin({
  contract: 'plugin/1',
  name: 'retention',
  summary:
    'Creates monthly partitions of the tables that grow with every call, and drops expired ones; deletes events after 30 days.',
  schema: {
    type: 'object',
    properties: {
      usageMonths: integer(
        'Whole months for which usage records are kept, in addition to the current one. Default: for ever.',
        { minimum: 1 },
      ),
      entryMonths: integer(
        'Whole months for which entries of the ledger are kept; a checkpoint of each account replaces older ones. Default: for ever.',
        { minimum: 1 },
      ),
    },
  },
  start: async ({ usageMonths, entryMonths }, { database, log }) => {
    const keep = async () => {
      await keepPartitions({ database, log, usageMonths, entryMonths });
      await deleteOldEvents(database);
    };
    await keep();
    return startLoop(keep, {
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: LOOK_EVERY_MS,
      whenFailed: (error) =>
        log.error(
          { reason: String(error) },
          'partitions could not be created or dropped, or old events deleted; the work is retried',
        ),
    }).stop;
  },
});
