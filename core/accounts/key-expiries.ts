import type { Knex } from 'knex';
import type { Logger } from 'pino';
import { raiseEvents } from '../events/raise';

/** How many days before a key expires its account is told. */
const SOON_DAYS = 7;
const AT_ONCE = 100;

interface ExpiringKey {
  readonly keyId: string;
  readonly accountId: string;
  readonly name: string;
  readonly expiresAt: Date;
  readonly once: string;
}

/** Raises an event for each active key that expires within seven days, once for each time of expiry. */
export async function raiseKeyExpiries(database: Knex, log: Logger): Promise<void> {
  const { rows } = await database.raw<{ rows: ExpiringKey[] }>(
    `SELECT id::text AS "keyId", account_id::text AS "accountId", name, expires_at AS "expiresAt", once
     FROM api_keys CROSS JOIN LATERAL (SELECT concat_ws(' ', id, extract(epoch FROM expires_at)) AS once) AS fact
     WHERE status = 'active' AND expires_at > now() AND expires_at < now() + interval '${SOON_DAYS} days'
       AND NOT EXISTS (SELECT FROM events WHERE events.once = 'key.expires_soon ' || fact.once)
     ORDER BY expires_at LIMIT ${AT_ONCE}`,
  );
  const events = rows.map(({ accountId, once, expiresAt, ...key }) => {
    const data = { ...key, expiresAt: expiresAt.toISOString() };
    return { type: 'key.expires_soon', accountId, once, data } as const;
  });
  await raiseEvents(database, log, events);
}
