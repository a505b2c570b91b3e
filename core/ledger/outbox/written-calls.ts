import type { Knex } from 'knex';
import { timeOfId } from '../../ids';

export interface Reservation {
  readonly rid: string;
  readonly accountId: string;
}

/**
 * Finds the closing entry of a reservation, or the usage record of a call that a report charged for. Records are indexed by
 * reservation and time. A record's time is when its call arrived: at most an hour from the time of the reservation's id, because
 * clocks may differ.
 */
const WRITTEN = `
  SELECT wanted.rid::text AS rid
  FROM jsonb_to_recordset(:reservations::jsonb) AS wanted (rid uuid, "accountId" uuid, at timestamptz)
  LEFT JOIN LATERAL (
    SELECT 1 AS found FROM ledger_entries AS entry
    WHERE entry.account_id = wanted."accountId" AND entry.rid = wanted.rid AND entry.created_at = wanted.at LIMIT 1) AS closing ON true
  LEFT JOIN LATERAL (
    SELECT 1 AS found FROM usage_records AS record
    WHERE closing.found IS NULL AND record.rid = wanted.rid AND record.account_id = wanted."accountId"
      AND record.created_at BETWEEN wanted.at - interval '1 hour' AND wanted.at + interval '1 hour' LIMIT 1) AS reported ON true
  WHERE coalesce(closing.found, reported.found) IS NOT NULL`;

/** Returns the ids of the reservations that Postgres has as closed: by an entry, or by the record of a reported call. */
export async function writtenCalls(database: Knex, reservations: readonly Reservation[]): Promise<ReadonlySet<string>> {
  const wanted = reservations.map(({ rid, accountId }) => ({ rid, accountId, at: new Date(timeOfId(rid)) }));
  const { rows } = await database.raw<{ rows: { rid: string }[] }>(WRITTEN, { reservations: JSON.stringify(wanted) });
  return new Set(rows.map(({ rid }) => rid));
}
