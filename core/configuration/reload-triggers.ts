import { join } from 'node:path';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { Stop } from '../base/resources';
import { safeErrorFields } from '../base/safe-error';
import { writeAudit } from '../storage/audit';
import type { LiveConfiguration, ReloadActor, Replacement } from './live-configuration';
import type { ConfigurationSource } from './source';
import { watchFile } from './watch-file';

interface ReloadTriggers {
  readonly live: LiveConfiguration;
  readonly source: ConfigurationSource['kind'];
  readonly configFolder: string;
  /** Whether the process reloads when files change; if false, only a signal or an operator triggers a reload. */
  readonly isWatching: boolean;
  readonly log: Logger;
}

/** Reloads the configuration on SIGHUP and, if watching, when files change. @returns a function that stops this */
export function reloadOnChange({ live, source, configFolder, isWatching, log }: ReloadTriggers): Stop {
  const reload = (actor: ReloadActor) => {
    live
      .reload(actor)
      .catch((error: unknown) => log.error({ error: safeErrorFields(error) }, 'the configuration could not be read'));
  };
  const onSignal = () => reload('signal');
  process.on('SIGHUP', onSignal);
  const warnOfRestart = () => {
    const { restartNeeded } = live;
    if (restartNeeded.length > 0) log.warn({ restartNeeded }, 'some changed settings take effect only after a restart');
  };
  const stops = isWatching ? [watchFile(join(configFolder, 'system.config.yml'), warnOfRestart)] : [];
  if (isWatching && source === 'file')
    stops.push(watchFile(join(configFolder, 'gateway.config.yml'), () => reload('file')));
  return async () => {
    process.off('SIGHUP', onSignal);
    await Promise.all(stops.map((stop) => stop()));
  };
}

/**
 * Writes a reload into the audit log before it takes effect, so that no crash can lose the entry. If the database is unreachable,
 * an operator's reload is refused. A changed file or a signal still takes effect, because the configuration must be changeable
 * then.
 */
export function recordReloads(database: Knex, log: Logger): (replacement: Replacement) => Promise<void> {
  return async ({ actor, before, after }) => {
    // Reloads by `revision` or `worker` need no entry. The applied revision, or the worker that got the operator's request, has already written one.
    if (actor === 'revision' || actor === 'worker') return;
    const written = database.transaction((transaction) =>
      writeAudit(transaction, {
        actor,
        action: 'config.reload',
        subject: 'config',
        before: { revision: before.revision },
        after: { revision: after.revision },
      }),
    );
    if (actor === 'admin') return written;
    await written.catch((error: unknown) =>
      log.error({ error: safeErrorFields(error) }, 'a reload could not be written to the audit log'),
    );
  };
}
