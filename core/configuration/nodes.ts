import { hostname } from 'node:os';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { newId } from '../base/ids';
import { onFirstFailure, startLoop } from '../base/loop';
import type { Stop } from '../base/resources';
import { safeErrorFields } from '../base/safe-error';
import type { LiveConfiguration } from './live-configuration';
import type { ConfigurationProblem } from './yaml-file';

/** A node's report about the configuration that it has in force. */
interface NodeReport {
  readonly source: 'file' | 'database';
  /** The number of the applied revision in force; null if the node reads its configuration from files. */
  readonly number: number | null;
  readonly revision: string;
  readonly since: string;
  readonly restartNeeded: readonly string[];
  /** The last configuration that the node could not apply, and the reason; null if there is none. */
  readonly failure: {
    readonly at: string;
    readonly number: number | null;
    readonly problems: readonly ConfigurationProblem[];
  } | null;
}

interface ConfigurationNode extends NodeReport {
  readonly node: string;
  /** The name of the node: its host and process. */
  readonly name: string;
  readonly startedAt: Date;
  readonly seenAt: Date;
}

const REPORT_EVERY_MS = 2_000;
const REPORT_AT_REST_EVERY_MS = 5_000;

/** How many seconds after its last report a node counts as gone. */
const GONE_AFTER_SECONDS = 10;
const FORGOTTEN_AFTER_SECONDS = 3_600;

interface ReportOptions {
  readonly live: LiveConfiguration;
  readonly source: NodeReport['source'];
  readonly database: Knex;
  readonly log: Logger;
}

/**
 * Stores in Postgres which configuration this process has in force, on every change and at regular intervals. Times are those of the
 * database's clock.
 * @returns a function that stops this
 */
export function reportConfiguration({ live, source, database, log }: ReportOptions): Stop {
  const node = { id: newId(), name: `${hostname()}:${process.pid}` };
  const report = async () => {
    await database.raw(
      `INSERT INTO config_nodes (id, name, started_at, seen_at, report) VALUES (:id, :name, now(), now(), :report)
       ON CONFLICT (id) DO UPDATE SET seen_at = now(), report = :report`,
      { ...node, report: JSON.stringify(reportOf(live, source)) },
    );
  };
  const whenFailed = onFirstFailure((error) =>
    log.warn(
      { error: safeErrorFields(error) },
      'the revision of this node cannot be written to Postgres for the other nodes',
    ),
  );
  const loop = startLoop(report, { everyMs: REPORT_EVERY_MS, atRestMs: REPORT_AT_REST_EVERY_MS, whenFailed });
  live.onOutcome(loop.wake);
  return async () => {
    await loop.stop();
    await database('config_nodes')
      .where({ id: node.id })
      .orWhere('seen_at', '<', secondsAgo(database, FORGOTTEN_AFTER_SECONDS))
      .delete()
      .catch(() => undefined);
  };
}

function reportOf(live: LiveConfiguration, source: NodeReport['source']): NodeReport {
  const { current, since, restartNeeded, lastFailure } = live;
  return {
    source,
    number: current.number ?? null,
    revision: current.revision,
    since: since.toISOString(),
    restartNeeded,
    failure:
      lastFailure === undefined
        ? null
        : { at: lastFailure.at.toISOString(), number: lastFailure.number ?? null, problems: lastFailure.problems },
  };
}

/** Returns the nodes that have reported within the last GONE_AFTER_SECONDS, ordered by name. */
export async function listConfigurationNodes(database: Knex): Promise<readonly ConfigurationNode[]> {
  const rows: (Pick<ConfigurationNode, 'node' | 'name' | 'startedAt' | 'seenAt'> & { report: NodeReport })[] =
    await database('config_nodes')
      .select('id as node', 'name', 'started_at as startedAt', 'seen_at as seenAt', 'report')
      .where('seen_at', '>', secondsAgo(database, GONE_AFTER_SECONDS))
      .orderBy(['name', 'id']);
  return rows.map(({ report, ...node }) => ({ ...node, ...report }));
}

function secondsAgo(database: Knex, seconds: number): Knex.Raw {
  return database.raw(`now() - interval '${seconds} seconds'`);
}
