import { EventEmitter, once } from 'node:events';
import type { Knex } from 'knex';
import type { Logger } from 'pino';
import type { Stop } from '../../../core/base/resources';
import { listenForNotifications } from '../../../core/storage/notifications';

const CHANNEL = 'tollgate_sandboxes';

/** Publishes change events of sandboxes to all processes that share a database. Events may be lost, so a waiting process must also poll. */
export class Changes {
  /** Emits two events for each change: one named by the sandbox's id, and one named `any`. */
  readonly #events = new EventEmitter().setMaxListeners(0);
  #stop: Stop = async () => {};

  constructor(
    private readonly database: Knex,
    private readonly log: Logger,
  ) {}

  /** Publishes a change to all processes once the transaction is committed. */
  readonly announce = async (transaction: Knex, sandboxId: string): Promise<void> => {
    await transaction.raw('SELECT pg_notify(?, ?)', [CHANNEL, sandboxId]);
  };

  /** Resolves at the next event of this sandbox, or after this time. */
  async next(sandboxId: string, withinMs: number): Promise<void> {
    await once(this.#events, sandboxId, { signal: AbortSignal.timeout(Math.ceil(withinMs)) }).catch(() => undefined);
  }

  /** Calls the listener at every event. Returns the function that removes it. */
  onAny(listener: () => void): () => void {
    this.#events.on('any', listener);
    return () => this.#events.off('any', listener);
  }

  /** Starts to receive change events from the database. */
  async listen(): Promise<void> {
    this.#stop = await listenForNotifications(this.database, CHANNEL, this.log, (sandboxId) => {
      this.#events.emit(sandboxId);
      this.#events.emit('any');
    });
  }

  close(): Promise<void> {
    return this.#stop();
  }
}
