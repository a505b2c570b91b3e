import type { Knex } from 'knex';
import { fail } from '../../../core/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import type { Rollout } from '../../../core/rollouts/rollout';
import { showRollout } from '../show';
import { readNow, readRows, readSeen } from '../store';

/** Finds a rollout of the configuration in force. @throws NOT_FOUND */
export function requireRollout({ configuration }: PluginGateway, name: string | undefined): Rollout {
  const rollout = configuration.rollouts.find((each) => each.name === name);
  if (rollout === undefined) throw fail('NOT_FOUND', { message: 'The configuration has no rollout with this name.' });
  return rollout;
}

/** Shows rollouts with their progress and the counts of both groups. */
export async function readRollouts(database: Knex, rollouts: readonly Rollout[]) {
  const rows = await readRows(database);
  const now = await readNow(database);
  return Promise.all(
    rollouts.map(async (rollout) => {
      const row = rows.get(rollout.name);
      const own = row?.definition === rollout.definition ? row : undefined;
      const seen = own === undefined ? () => undefined : await readSeen(database, own.run);
      return showRollout(rollout, own, seen, now.getTime());
    }),
  );
}
