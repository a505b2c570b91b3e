import type { Knex } from 'knex';
import { fail } from '../../core/base/errors';
import { newId } from '../../core/base/ids';
import { log } from '../../core/base/log';
import { raiseEvents } from '../../core/events/raise';
import type { Rollout } from '../../core/rollouts/rollout';
import { writeAudit } from '../../core/storage/audit';
import type { Status } from './decide';
import {
  afterStandstill,
  alone,
  beginRun,
  forgetAccounts,
  hasStagesOf,
  type RolloutRow,
  readNow,
  readRows,
  updateRow,
} from './store';

export type Order = 'pause' | 'resume' | 'promote' | 'rollback';

interface GivenOrder {
  readonly order: Order;
  readonly actor: string;
  readonly reason: string | undefined;
  /** The stage that the operator's order is meant for, because the rollout may have reached another stage meanwhile. undefined: any stage. */
  readonly stage: number | undefined;
}

/** The states of a rollout in which each operator's order (`pause`, `resume`, `promote`, `rollback`) is accepted. */
const GIVEN_IN: Readonly<Record<Order, readonly Status[]>> = {
  pause: ['running'],
  resume: ['paused', 'held', 'rolled-back'],
  promote: ['running', 'paused', 'held'],
  rollback: ['running', 'paused', 'held', 'completed'],
};

/** The orders that a node accepts only if its configured stages equal those in Postgres. The other orders do not depend on stages. */
const WIDENING: readonly Order[] = ['promote', 'resume'];

/** Applies an operator's order for all nodes and writes it into the audit log. @throws CONFLICT if the rollout's state does not allow it */
export function give(database: Knex, rollout: Rollout, { order, actor, reason, stage }: GivenOrder): Promise<void> {
  return alone(database, async (trx) => {
    const row = (await readRows(trx)).get(rollout.name);
    if (row?.definition !== rollout.definition)
      throw fail('CONFLICT', {
        message: `Rollout "${rollout.name}" has not started. If it has on another node, the nodes have different configuration files.`,
      });
    if (!GIVEN_IN[order].includes(row.status))
      throw fail('CONFLICT', { message: `Rollout "${rollout.name}" is ${row.status}, so ${order} is not possible.` });
    if (stage !== undefined && stage !== row.stage)
      throw fail('CONFLICT', { message: `Rollout "${rollout.name}" is now at stage ${row.stage}, not at ${stage}.` });
    if (WIDENING.includes(order) && !hasStagesOf(row, rollout))
      throw fail('CONFLICT', {
        message: `Rollout "${rollout.name}" has other stages on another node. Use the same configuration file on all nodes.`,
      });
    const change = await changeOf(trx, rollout, row, order, reason ?? null);
    await writeAudit(trx, {
      actor,
      action: `rollout.${order}`,
      subject: `rollout:${rollout.name}`,
      before: { status: row.status, stage: row.stage },
      after: { ...change, reason },
    });
    const data = { rollout: rollout.name, status: change.status, stage: change.stage, reason };
    await raiseEvents(trx, log, [{ type: `rollout.${order}`, once: newId(), data }]);
  });
}

/** Applies an operator's order to a rollout, and returns the new status and stage for the audit log. */
async function changeOf(
  trx: Knex.Transaction,
  rollout: Rollout,
  row: RolloutRow,
  order: Order,
  reason: string | null,
): Promise<Pick<RolloutRow, 'status' | 'stage'>> {
  const now = await readNow(trx);
  const to = async (change: Partial<RolloutRow>) => {
    await updateRow(trx, row, { reason: null, ...change, changed_at: now, followed_at: now });
    return { status: change.status ?? row.status, stage: change.stage ?? row.stage };
  };
  switch (order) {
    case 'pause':
      return to({ status: 'paused', reason });
    case 'rollback':
      return to({ status: 'rolled-back', reason: reason ?? 'an operator rolled it back' });
    case 'promote':
      if (row.stage === rollout.stages.length) return to({ status: 'completed' });
      await forgetAccounts(trx, row.run);
      return to({ status: 'running', stage: row.stage + 1, stage_since: now, looks: {} });
    case 'resume':
      if (row.status === 'rolled-back') return beginRun(trx, rollout, now);
      return to({ status: 'running', stage_since: afterStandstill(row, now) });
  }
}
