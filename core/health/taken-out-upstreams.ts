import type { Knex } from 'knex';
import { startLoop } from '../loop';
import type { Stop } from '../resources';
import { writeAudit } from '../storage/audit';
import type { UpstreamHealth } from './health';

/** An upstream an operator has taken out, until an operator brings it back. */
export interface TakenOut {
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

interface Parts {
  readonly database: Knex;
  readonly health: UpstreamHealth;
}

/** Written down first, then told to all nodes. Safe to repeat: the first word stands, and is the one in the audit log. */
export async function takeOutUpstream(
  { database, health }: Parts,
  name: string,
  { actor, reason }: Pick<TakenOut, 'actor' | 'reason'>,
): Promise<void> {
  await database.transaction(async (transaction) => {
    const row = { name, created_at: new Date(), actor, reason: reason ?? null };
    const written = await transaction('taken_out_upstreams').insert(row).onConflict('name').ignore().returning('name');
    if (written.length === 0) return;
    const after = { takenOut: true, reason };
    await writeAudit(transaction, { actor, action: 'upstream.eject', subject: `upstream:${name}`, after });
  });
  health.takeOut(name);
}

/** Also ends an ejection that its own failures brought about. */
export async function bringBackUpstream({ database, health }: Parts, name: string, actor: string): Promise<void> {
  await database.transaction(async (transaction) => {
    const takenOut = await transaction('taken_out_upstreams').where({ name }).delete();
    const before = { takenOut: takenOut > 0, ejected: health.upstream(name).ejection.outUntilMs !== undefined };
    await writeAudit(transaction, { actor, action: 'upstream.restore', subject: `upstream:${name}`, before });
  });
  health.bringBack(name);
}

/** By name. */
export async function listTakenOut(database: Knex): Promise<ReadonlyMap<string, TakenOut>> {
  const rows: Row[] = await database<Row>('taken_out_upstreams').select();
  return new Map(
    rows.map(({ name, created_at: since, actor, reason }) => [
      name,
      { name, since, actor, reason: reason ?? undefined },
    ]),
  );
}

/** Nodes are told at once; what they did not hear, because they were not there yet, they read so often. */
const READ_EVERY_MS = 3_000;

/** Takes over what is written down, now and from time to time. Answers how to stop. */
export async function followTakenOut({ database, health }: Parts): Promise<Stop> {
  const read = async () => {
    const { takenOutChanges } = health;
    const takenOut = await listTakenOut(database);
    // What was heard meanwhile is newer than what was read.
    if (takenOutChanges === health.takenOutChanges) health.settleTakenOut(new Set(takenOut.keys()));
  };
  await read();
  // A database that is away changes nothing: what is known stands.
  return startLoop(read, { everyMs: READ_EVERY_MS, firstAfterMs: READ_EVERY_MS, whenFailed: () => undefined }).stop;
}
