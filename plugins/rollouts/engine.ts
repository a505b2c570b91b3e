import type { Knex } from 'knex';
import { type AuditEntry, writeAudit } from '../../core/audit';
import type { Configuration } from '../../core/configuration';
import type { Gateway } from '../../core/gateway';
import { keyOf } from '../../core/live-rollouts';
import { startLoop } from '../../core/loop';
import type { Rollout, RolloutPosition } from '../../core/rollout';
import { describeShare } from '../../core/rollout-plan';
import { describeFault } from '../../core/thrown';
import { type Decision, decide } from './decide';
import { rolloutCalls } from './figures';
import { addSeen, beginRun, type RolloutRow, readNow, readRows, readSeen, unlessOtherDoes, updateRow } from './store';
import { Tally } from './tally';

/** So often a node writes down what it has seen, decides if nobody else does, and follows what was decided. */
const EVERY_MS = 400;

/** Who is written into the audit log for what a rollout does by itself. */
const ENGINE = 'rollouts';

/**
 * Keeps this node with the rollouts. All nodes run it: each writes down what it sees, whoever comes first decides, and all follow
 * what is written down. Nothing that must not be lost is kept here.
 */
export class Engine {
  readonly #tally = new Tally();
  /** The configuration whose rollouts this node has begun: once each, so that two nodes with different files do not do so in turns. */
  #begunOf: Configuration | undefined;
  #rows: ReadonlyMap<string, RolloutRow> = new Map();

  constructor(private readonly gateway: Pick<Gateway, 'database' | 'rollouts' | 'configuration' | 'log'>) {}

  /** Answers what ends it. */
  async start(): Promise<() => Promise<void>> {
    const { rollouts, log } = this.gateway;
    rollouts.onSeen((seen) => {
      this.#tally.note(seen);
      rolloutCalls.inc({ rollout: seen.name, arm: seen.arm, outcome: seen.isError ? 'failed' : 'answered' });
    });
    await this.#work();
    let isFailing = false;
    const stop = startLoop(
      async () => {
        await this.#work();
        isFailing = false;
      },
      EVERY_MS,
      (error) => {
        if (!isFailing)
          log.error({ error: describeFault(error) }, 'rollouts cannot be followed now; they stay as they are');
        isFailing = true;
      },
    );
    return async () => {
      rollouts.endMirrors();
      await stop();
      await this.#writeSeen().catch(() => undefined);
    };
  }

  /** What was written down when this node last looked, of rollouts it has in its configuration. */
  rowOf({ name, definition }: Rollout): RolloutRow | undefined {
    const row = this.#rows.get(name);
    return row?.definition === definition ? row : undefined;
  }

  /** Takes over what is written down, for the next call. */
  async follow(): Promise<void> {
    const { configuration, database, rollouts } = this.gateway;
    this.#rows = configuration.rollouts.length === 0 ? new Map() : await readRows(database);
    const positions = configuration.rollouts.flatMap((rollout) => {
      const row = this.rowOf(rollout);
      const position = row === undefined ? undefined : positionOf(rollout, row);
      return position === undefined ? [] : [[keyOf(rollout), position] as const];
    });
    rollouts.follow(new Map(positions));
  }

  async #work(): Promise<void> {
    await this.#writeSeen();
    if (this.gateway.configuration.rollouts.length > 0)
      await unlessOtherDoes(this.gateway.database, (trx) => this.#decideAll(trx));
    await this.follow();
  }

  async #writeSeen(): Promise<void> {
    const seen = this.#tally.take();
    if (seen.length === 0) return;
    await addSeen(this.gateway.database, seen).catch((error: unknown) => {
      this.#tally.giveBack(seen);
      throw error;
    });
  }

  async #decideAll(trx: Knex.Transaction): Promise<void> {
    const rows = await readRows(trx);
    const now = await readNow(trx);
    const { configuration } = this.gateway;
    for (const rollout of configuration.rollouts) {
      const row = rows.get(rollout.name);
      if (row?.definition === rollout.definition) await this.#decideOne(trx, rollout, row, now);
      else if (this.#begunOf !== configuration) await this.#begin(trx, rollout, now);
    }
    this.#begunOf = configuration;
  }

  async #begin(trx: Knex.Transaction, rollout: Rollout, now: Date): Promise<void> {
    await beginRun(trx, rollout, now);
    await this.#tellAll(trx, rollout, 'rollout.begin', { stage: 1, share: describeShare(rollout, 0) });
  }

  async #decideOne(trx: Knex.Transaction, rollout: Rollout, row: RolloutRow, now: Date): Promise<void> {
    if (row.status !== 'running' && row.status !== 'paused') return;
    const decision = decide(rollout, progressOf(row), await readSeen(trx, row.run), now.getTime());
    if (decision.do !== 'wait') return this.#apply(trx, rollout, row, decision, now);
    if (JSON.stringify(decision.looks) !== JSON.stringify(row.looks))
      await updateRow(trx, row, { looks: decision.looks });
  }

  async #apply(
    trx: Knex.Transaction,
    rollout: Rollout,
    row: RolloutRow,
    { do: what, why: reason }: Decision,
    now: Date,
  ): Promise<void> {
    if (what === 'advance') {
      const stage = row.stage + 1;
      await updateRow(trx, row, { stage, stage_since: now, changed_at: now, looks: {} });
      return this.#tellAll(trx, rollout, 'rollout.advance', { stage, share: describeShare(rollout, stage - 1) });
    }
    const status = what === 'complete' ? 'completed' : rollout.onAbort === 'hold' ? 'held' : 'rolled-back';
    await updateRow(trx, row, { status, reason, changed_at: now });
    await this.#tellAll(trx, rollout, `rollout.${what}`, { status, stage: row.stage, reason });
  }

  async #tellAll(trx: Knex.Transaction, { name }: Rollout, action: string, after: NonNullable<AuditEntry['after']>) {
    this.gateway.log.info({ rollout: name, action, ...after }, 'a rollout has changed');
    await writeAudit(trx, { actor: ENGINE, action, subject: `rollout:${name}`, after });
  }
}

export function progressOf({ status, stage, stage_since, looks }: RolloutRow) {
  return { status, stage, stageSinceMs: stage_since.getTime(), looks };
}

/** undefined: nobody is in it. */
function positionOf({ stages }: Rollout, { run, status, stage }: RolloutRow): RolloutPosition | undefined {
  const share = stages[stage - 1]?.share;
  if (share === undefined || status === 'rolled-back') return undefined;
  return { run, stage, share, isOver: status === 'completed' };
}
