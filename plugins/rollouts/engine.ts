import { isDeepStrictEqual } from 'node:util';
import type { Knex } from 'knex';
import { newId } from '../../core/base/ids';
import { type Loop, onFirstFailure, startLoop } from '../../core/base/loop';
import type { Stop } from '../../core/base/resources';
import { safeErrorFields } from '../../core/base/safe-error';
import type { Configuration } from '../../core/configuration/configuration';
import { raiseEvents } from '../../core/events/raise';
import type { PluginGateway } from '../../core/gateway/plugin-gateway';
import { rolloutKeyOf, type SeenCall } from '../../core/rollouts/live-rollouts';
import { describeShare } from '../../core/rollouts/plan';
import type { Rollout, RolloutPosition } from '../../core/rollouts/rollout';
import { type AuditEntry, writeAudit } from '../../core/storage/audit';
import { callsPerAccount, decideRollout, type RolloutDecision } from './decide';
import { rolloutCalls } from './show';
import {
  addSeen,
  afterStandstill,
  alone,
  beginRun,
  carrySeen,
  forgetAccounts,
  hasStagesOf,
  progressOf,
  type RolloutRow,
  readNow,
  readRows,
  readSeen,
  restage,
  sharesOf,
  unlessOtherDoes,
  updateRow,
  watchedAt,
} from './store';

/** How often a node works on rollouts: it writes its counts, decides next steps unless another node is deciding, and applies the stored decisions. */
const EVERY_MS = 400;
/** How often the rollout engine works while the configuration has no rollouts. A new configuration wakes it at once. */
const WITHOUT_ROLLOUTS_EVERY_MS = 30_000;

/** The maximum number of calls that wait to be counted in Postgres; the engine does not count further ones. */
const MAX_KEPT = 100_000;

/** A change of a rollout, in the audit log and as the type of an event. */
type RolloutAction = `rollout.${'begin' | 'restage' | 'advance' | 'complete' | 'abort'}`;

/** The actor in the audit log for automatic changes of a rollout. */
const ENGINE = 'rollouts';

export type EngineGateway = Pick<
  PluginGateway,
  'database' | 'rollouts' | 'configuration' | 'liveConfiguration' | 'log'
>;

/**
 * Makes this node follow the rollouts. Every node runs an engine: each writes its counts to Postgres, the first to get the lock decides,
 * and all apply the stored decisions. A crash loses no state that matters.
 */
export class RolloutEngine {
  /** The calls of this process that are not yet counted in Postgres. */
  #seen: SeenCall[] = [];
  /**
   * The configuration whose rollouts this node has started. The node starts them once, because otherwise two nodes with different files
   * would restart each other's rollouts.
   */
  #begunOf: Configuration | undefined;
  #rows: ReadonlyMap<string, RolloutRow> = new Map();

  /** The last read of the rollouts' rows. Reads run one after another, so that an older result cannot replace a newer one. */
  #following: Promise<void> = Promise.resolve();
  #loop: Loop | undefined;

  constructor(private readonly gateway: EngineGateway) {}

  /** Starts the engine and returns the function that stops it. */
  async start(): Promise<Stop> {
    const { rollouts, liveConfiguration, log } = this.gateway;
    rollouts.onSeen((seen) => {
      if (seen.isDrawn && this.#seen.length < MAX_KEPT) this.#seen.push(seen);
      rolloutCalls.inc({ rollout: seen.name, group: seen.group, outcome: seen.isError ? 'failed' : 'answered' });
    });
    await this.#work();
    liveConfiguration.take((next) => this.#prepare(next));
    const loop = startLoop(() => this.#work(), {
      everyMs: () => (this.gateway.configuration.rollouts.length > 0 ? EVERY_MS : WITHOUT_ROLLOUTS_EVERY_MS),
      whenFailed: onFirstFailure((error) =>
        log.error(
          { error: safeErrorFields(error) },
          'the state of rollouts cannot be read or written; it stays as it is, and the work is retried',
        ),
      ),
    });
    this.#loop = loop;
    return async () => {
      rollouts.endMirrors();
      await loop.stop();
      await this.#writeSeen().catch(() => undefined);
    };
  }

  /** Returns a rollout's row as this node last read it; undefined if the row belongs to an earlier definition of a rollout with this name. */
  rowOf({ name, definition }: Rollout): RolloutRow | undefined {
    const row = this.#rows.get(name);
    return row?.definition === definition ? row : undefined;
  }

  /** Applies the rollouts' state, as stored in Postgres, to the next calls of this node. */
  follow(): Promise<void> {
    const followed = this.#following.then(() => this.#follow());
    this.#following = followed.catch(() => undefined);
    return followed;
  }

  async #follow(): Promise<void> {
    const { configuration } = this.gateway;
    const rows = await this.#rowsFor(configuration);
    // If another configuration has been loaded meanwhile, `#prepare` has already set that configuration's rollouts; the next read of Postgres updates
    // them.
    if (this.gateway.configuration === configuration) this.#place(configuration, rows);
  }

  /** Prepares the rollouts of a configuration before it takes effect, so that the callers in a rollout stay in it without a gap. */
  async #prepare(next: Configuration): Promise<() => void> {
    // A configuration file takes effect even while the database is unavailable.
    const rows = await this.#rowsFor(next).catch(() => this.#rows);
    return () => {
      this.#place(next, rows);
      this.#loop?.wake();
    };
  }

  async #rowsFor({ rollouts }: Configuration): Promise<ReadonlyMap<string, RolloutRow>> {
    return rollouts.length === 0 ? new Map() : readRows(this.gateway.database);
  }

  #place({ rollouts }: Configuration, rows: ReadonlyMap<string, RolloutRow>): void {
    this.#rows = rows;
    const positions = rollouts.flatMap((rollout) => {
      const row = this.rowOf(rollout);
      const position = row === undefined ? undefined : positionOf(row);
      return position === undefined ? [] : [[rolloutKeyOf(rollout), position] as const];
    });
    this.gateway.rollouts.follow(new Map(positions));
  }

  async #work(): Promise<void> {
    // A node that cannot write its own counts still applies the decisions of the other nodes.
    const [written] = await Promise.allSettled([this.#writeSeen()]);
    const { configuration, database } = this.gateway;
    if (configuration.rollouts.length > 0) {
      // Wait for the lock if the configuration is new. If this node started its rollouts later, it could overrule newer configurations of other
      // nodes.
      const inTurn = this.#begunOf === configuration ? unlessOtherDoes : alone;
      const hasDecided = await inTurn(database, (trx) => this.#decideAll(trx, configuration));
      if (hasDecided !== false) this.#begunOf = configuration;
    }
    await this.follow();
    if (written.status === 'rejected') throw written.reason;
  }

  async #writeSeen(): Promise<void> {
    const seen = this.#seen;
    if (seen.length === 0) return;
    this.#seen = [];
    const { database, configuration } = this.gateway;
    const perAccount = new Map(configuration.rollouts.map((each) => [each.name, callsPerAccount(each)]));
    await addSeen(database, seen, (name) => perAccount.get(name)).catch((error: unknown) => {
      this.#seen = [...seen, ...this.#seen];
      throw error;
    });
  }

  async #decideAll(trx: Knex.Transaction, configuration: Configuration): Promise<void> {
    const rows = await readRows(trx);
    const now = await readNow(trx);
    const isNew = this.#begunOf !== configuration;
    for (const rollout of configuration.rollouts) {
      const row = rows.get(rollout.name);
      if (row?.definition === rollout.definition && hasStagesOf(row, rollout))
        await this.#decideOne(trx, rollout, row, now);
      else if (isNew && row?.definition === rollout.definition) await this.#restage(trx, rollout, row, now);
      else if (isNew) await this.#begin(trx, rollout, now);
    }
  }

  async #begin(trx: Knex.Transaction, rollout: Rollout, now: Date): Promise<void> {
    await beginRun(trx, rollout, now);
    await this.#record(trx, rollout, 'rollout.begin', { stage: 1, share: describeShare(rollout, 0) });
  }

  /** Continues a rollout at one of the newly configured stages after an operator changed its stages. */
  async #restage(trx: Knex.Transaction, rollout: Rollout, row: RolloutRow, now: Date): Promise<void> {
    const { stage, isSameSoFar } = restage(row, rollout);
    const share = rollout.stages[stage - 1]?.share;
    const continues = row.status === 'completed' && stage < rollout.stages.length;
    const standsStill = row.status === 'paused' || row.status === 'held';
    await updateRow(trx, row, {
      stage,
      shares: sharesOf(rollout),
      changed_at: now,
      ...(continues && { status: 'running', reason: null, followed_at: now }),
      ...(standsStill && { stage_since: afterStandstill(row, now) }),
      ...(share !== shareOf(row) && { stage_since: now }),
      ...(!isSameSoFar && { run: await carrySeen(trx, row.run), looks: {} }),
    });
    const status = continues ? 'running' : row.status;
    await this.#record(trx, rollout, 'rollout.restage', { status, stage, share: describeShare(rollout, stage - 1) });
  }

  async #decideOne(trx: Knex.Transaction, rollout: Rollout, found: RolloutRow, now: Date): Promise<void> {
    if (found.status !== 'running' && found.status !== 'paused') return;
    const watched = watchedAt(found, now);
    if (watched !== undefined) await updateRow(trx, found, watched);
    const row = { ...found, ...watched };
    const decision = decideRollout(rollout, progressOf(row), await readSeen(trx, row.run), now.getTime());
    if (decision.do !== 'wait') return this.#apply(trx, rollout, row, decision.do, decision.why, now);
    if (isDeepStrictEqual(decision.looks, row.looks)) return;
    await updateRow(trx, row, { looks: decision.looks });
    await forgetAccounts(trx, row.run);
  }

  async #apply(
    trx: Knex.Transaction,
    rollout: Rollout,
    row: RolloutRow,
    what: Exclude<RolloutDecision['do'], 'wait'>,
    reason: string,
    now: Date,
  ): Promise<void> {
    if (what === 'advance') {
      const stage = row.stage + 1;
      await updateRow(trx, row, { stage, stage_since: now, changed_at: now, looks: {} });
      await forgetAccounts(trx, row.run);
      return this.#record(trx, rollout, 'rollout.advance', { stage, share: describeShare(rollout, stage - 1) });
    }
    const status = what === 'complete' ? 'completed' : rollout.onAbort === 'hold' ? 'held' : 'rolled-back';
    await updateRow(trx, row, { status, reason, changed_at: now });
    await this.#record(trx, rollout, `rollout.${what}`, { status, stage: row.stage, reason });
  }

  async #record(
    trx: Knex.Transaction,
    { name }: Rollout,
    action: RolloutAction,
    after: NonNullable<AuditEntry['after']>,
  ) {
    const { log } = this.gateway;
    log.info({ rollout: name, action, ...after }, 'the state of a rollout has changed');
    await writeAudit(trx, { actor: ENGINE, action, subject: `rollout:${name}`, after });
    await raiseEvents(trx, log, [{ type: action, once: newId(), data: { rollout: name, ...after } }]);
  }
}

function shareOf({ shares, stage }: Pick<RolloutRow, 'shares' | 'stage'>): number | undefined {
  return shares[stage - 1];
}

/**
 * Returns the current stage and share of a rollout; undefined if no caller is in the rollout. Both come from the row in Postgres, so they
 * are the same on a node that has other stages configured.
 */
function positionOf(row: RolloutRow): RolloutPosition | undefined {
  const { run, status, stage } = row;
  const share = shareOf(row);
  if (share === undefined || status === 'rolled-back') return undefined;
  return { run, stage, share, isOver: status === 'completed' };
}
