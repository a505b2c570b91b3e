import type { Knex } from 'knex';
import { showAttempt } from '../catalog/attempt-fields';

/** Returns the attempts of one call, in order; none if the call was refused before any upstream was tried. */
export async function listAttempts(database: Knex, requestId: string) {
  const rows: Record<string, unknown>[] = await database('upstream_attempts')
    .where({ request_id: requestId })
    .orderBy(['created_at', 'number']);
  return rows.map(showAttempt);
}
