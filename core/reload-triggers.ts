import { join } from 'node:path';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { writeAudit } from './audit';
import type { LiveConfiguration, ReloadActor, ReloadOutcome } from './live-configuration';
import { describeFault } from './thrown';
import { watchFile } from './watch-file';

export interface ReloadTriggers {
  readonly live: LiveConfiguration;
  readonly configFolder: string;
  /** False: files are read again only when somebody asks. */
  readonly isWatching: boolean;
  readonly database: Knex;
  readonly log: Logger;
}

/** SIGHUP and changed files reload the configuration. @returns ends it */
export function reloadOnChange({ live, configFolder, isWatching, database, log }: ReloadTriggers): () => void {
  const reload = (actor: ReloadActor) => {
    void live
      .reload(actor)
      .then((outcome) => database.transaction((transaction) => auditReload(transaction, actor, outcome)))
      // The configuration must be changeable while the database is away.
      .catch((error: unknown) =>
        log.error({ error: describeFault(error) }, 'a reload could not be written into the audit log'),
      );
  };
  const onSignal = () => reload('signal');
  process.on('SIGHUP', onSignal);
  const stops = isWatching
    ? [
        watchFile(join(configFolder, 'gateway.config.yml'), () => reload('file')),
        watchFile(join(configFolder, 'system.config.yml'), () => {
          const { restartNeeded } = live;
          if (restartNeeded.length > 0) log.warn({ restartNeeded }, 'some of what was changed needs a restart');
        }),
      ]
    : [];
  return () => {
    process.off('SIGHUP', onSignal);
    for (const stop of stops) stop();
  };
}

/** Writes a reload that changed something into the audit log. */
export async function auditReload(
  transaction: Knex.Transaction,
  actor: ReloadActor,
  outcome: ReloadOutcome,
): Promise<void> {
  if (outcome.outcome === 'refused') return;
  const before = { revision: outcome.before };
  const after = { revision: outcome.revision };
  await writeAudit(transaction, { actor, action: 'config.reload', subject: 'config', before, after });
}
