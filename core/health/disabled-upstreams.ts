import type { Knex } from 'knex';
import { startLoop } from '../base/loop';
import type { Stop } from '../base/resources';
import { writeAudit } from '../storage/audit';
import type { UpstreamHealth } from './health';

/** An upstream that an operator has disabled; it stays disabled until an operator enables it. */
export interface DisabledUpstream {
  readonly name: string;
  readonly since: Date;
  readonly actor: string;
  readonly reason: string | undefined;
}

interface Row {
  readonly name: string;
  readonly created_at: Date;
  readonly actor: string;
  readonly reason: string | null;
}

interface DisableContext {
  readonly database: Knex;
  readonly health: UpstreamHealth;
}

/**
 * Disables an upstream. Writes it to Postgres first, then publishes it to all nodes. Disabling it again changes nothing, and the audit log
 * keeps the first reason.
 */
export async function disableUpstream(
  { database, health }: DisableContext,
  name: string,
  { actor, reason }: Pick<DisabledUpstream, 'actor' | 'reason'>,
): Promise<void> {
  await database.transaction(async (transaction) => {
    const row = { name, created_at: new Date(), actor, reason: reason ?? null };
    const written = await transaction('taken_out_upstreams').insert(row).onConflict('name').ignore().returning('name');
    if (written.length === 0) return;
    const after = { takenOut: true, reason };
    await writeAudit(transaction, { actor, action: 'upstream.disable', subject: `upstream:${name}`, after });
  });
  health.disable(name);
}

/** Enables an upstream again, and ends its ejection (automatic exclusion after failures) if it is ejected. */
export async function enableUpstream({ database, health }: DisableContext, name: string, actor: string): Promise<void> {
  await database.transaction(async (transaction) => {
    const deleted = await transaction('taken_out_upstreams').where({ name }).delete();
    const before = { takenOut: deleted > 0, ejected: health.upstream(name).ejection.outUntilMs !== undefined };
    await writeAudit(transaction, { actor, action: 'upstream.enable', subject: `upstream:${name}`, before });
  });
  health.enable(name);
}

/** Returns the disabled upstreams, by name. */
export async function listDisabledUpstreams(database: Knex): Promise<ReadonlyMap<string, DisabledUpstream>> {
  const rows: Row[] = await database<Row>('taken_out_upstreams').select();
  return new Map(
    rows.map(({ name, created_at: since, actor, reason }) => [
      name,
      { name, since, actor, reason: reason ?? undefined },
    ]),
  );
}

/** How often a node reads the disabled upstreams from Postgres. Other nodes also publish each change at once, but such an event may be lost. */
const READ_EVERY_MS = 3_000;
const READ_AT_REST_EVERY_MS = 60_000;

/** Applies the disabled upstreams in Postgres to this node, now and every READ_EVERY_MS. Returns a function that stops this. */
export async function followDisabledUpstreams({ database, health }: DisableContext): Promise<Stop> {
  const read = async () => {
    const { operatorChanges } = health;
    const disabled = await listDisabledUpstreams(database);
    // A result that was read while an event arrived is ignored, because the event contains a newer change than the result.
    if (operatorChanges === health.operatorChanges) health.applyDisabled(new Set(disabled.keys()));
  };
  await read();
  // While Postgres is unreachable, the node keeps the last known set of disabled upstreams.
  const times = { everyMs: READ_EVERY_MS, firstAfterMs: READ_EVERY_MS, atRestMs: READ_AT_REST_EVERY_MS };
  return startLoop(read, { ...times, whenFailed: () => undefined }).stop;
}
