import type { Logger } from 'pino';
import { Counter, Gauge } from 'prom-client';
import { metrics } from '../metrics';
import type { OperatorActor } from '../storage/audit';
import { describeFault } from '../thrown';
import type { Configuration } from './configuration';
import type { RestartNeeded } from './restart-needed';
import { ConfigurationError, type ConfigurationProblem } from './yaml-file';

/**
 * Who asked for a reload, as the audit log names them; `revision`: the newest applied one is followed; `worker`: an operator asked
 * another worker.
 */
export type ReloadActor = OperatorActor | Automatic;

const AUTOMATIC = ['signal', 'file', 'revision', 'worker'] as const;

type Automatic = (typeof AUTOMATIC)[number];

/**
 * Makes ready for another configuration; what it returns puts that into force. All are asked before any is put into force, and
 * one that throws refuses the configuration for all.
 */
export type Prepare<C extends Configuration = Configuration> = (next: C) => Promise<() => void> | (() => void);

export type ReloadOutcome =
  | {
      readonly outcome: 'reloaded';
      /** The revision until now. */
      readonly before: string;
      readonly revision: string;
      readonly restartNeeded: readonly string[];
    }
  | { readonly outcome: 'refused'; readonly revision: string; readonly problems: readonly ConfigurationProblem[] };

export interface RefusedReload {
  readonly at: Date;
  /** Of the applied revision that was refused. */
  readonly number: number | undefined;
  readonly actor: ReloadActor;
  readonly problems: readonly ConfigurationProblem[];
}

/** A configuration takes the place of another. */
export interface Replacement {
  readonly actor: ReloadActor;
  readonly before: Configuration;
  readonly after: Configuration;
}

export interface LiveConfigurationOptions<C extends Configuration> {
  /** In force from the start. */
  readonly first: C;
  /** Reads what is to be in force now. @throws ConfigurationError */
  readonly read: () => Promise<C>;
  /** Asked when all is ready and nothing has changed yet; when it rejects, nothing changes. */
  readonly record: (replacement: Replacement) => Promise<void>;
  readonly needsRestart: RestartNeeded;
  /** Lets the other workers reload, too, what an operator asked this one to. */
  readonly spread?: (() => Promise<unknown>) | undefined;
  readonly log: Logger;
}

/** A configuration for which all who take part are ready; the commits put it into force. */
interface Ready<C> {
  readonly next: C;
  readonly commits: readonly (() => void)[];
}

type Refusal = Pick<ConfigurationError, 'number' | 'problems'>;

const reloads = new Counter({
  name: 'tollgate_config_reloads_total',
  help: 'Reloads of the configuration, by result.',
  labelNames: ['outcome'] as const,
  registers: [metrics],
});

const lastReloadSuccessful = new Gauge({
  name: 'tollgate_config_last_reload_successful',
  help: '1 if the last reload of the configuration succeeded, 0 if it was rejected.',
  aggregator: 'min',
  registers: [metrics],
});

const inForceSince = new Gauge({
  name: 'tollgate_config_in_force_timestamp_seconds',
  help: 'Unix time when the active configuration was loaded.',
  aggregator: 'min',
  registers: [metrics],
});

/** The configuration in force, and the way to another one. */
export interface LiveConfiguration<C extends Configuration = Configuration> {
  readonly current: C;
  readonly since: Date;
  /** Why the last reload was refused; undefined when it was not. */
  readonly lastFailure: RefusedReload | undefined;
  /** What the files say and a reload cannot take over. */
  readonly restartNeeded: readonly string[];
  /** Has a say in every reload from now on. */
  take(prepare: Prepare<C>): void;
  /**
   * Reads the configuration and puts what it says into force, for every call that begins from then on; calls that run end with
   * what they began with. One with mistakes changes nothing, and neither does a changed file that says what is in force. One reload
   * at a time. Rejects, and changes nothing, when it cannot be read or recorded because a store is away.
   */
  reload(actor: ReloadActor): Promise<ReloadOutcome>;
}

export class ReloadableConfiguration<C extends Configuration> implements LiveConfiguration<C> {
  #current: C;
  #since: Date;
  #lastFailure: RefusedReload | undefined;
  #running: Promise<unknown> = Promise.resolve();
  readonly #participants: Prepare<C>[] = [];
  readonly #options: LiveConfigurationOptions<C>;

  constructor(options: LiveConfigurationOptions<C>) {
    this.#options = options;
    this.#current = options.first;
    this.#since = begins();
    for (const outcome of ['reloaded', 'refused']) reloads.inc({ outcome }, 0);
  }

  get current(): C {
    return this.#current;
  }

  get since(): Date {
    return this.#since;
  }

  get lastFailure(): RefusedReload | undefined {
    return this.#lastFailure;
  }

  get restartNeeded(): readonly string[] {
    return this.#options.needsRestart(this.#current);
  }

  take(prepare: Prepare<C>): void {
    this.#participants.push(prepare);
  }

  reload(actor: ReloadActor): Promise<ReloadOutcome> {
    const outcome = this.#running.then(() => this.#reload(actor));
    this.#running = outcome.catch(() => undefined);
    return outcome;
  }

  async #reload(actor: ReloadActor): Promise<ReloadOutcome> {
    const replaced = this.#current;
    const ready = await this.#makeReady();
    if ('problems' in ready) return this.#refuse(ready, actor);
    const { next, commits } = ready;
    if (actor === 'file' && next.revision === replaced.revision) return this.#keep();
    await this.#options.record({ actor, before: replaced, after: next });
    // Nothing may come between these: a call sees all of one configuration.
    for (const commit of commits) commit();
    this.#current = next;
    this.#since = begins();
    this.#lastFailure = undefined;
    reloads.inc({ outcome: 'reloaded' });
    const { log } = this.#options;
    const { revision } = next;
    const before = replaced.revision;
    const { restartNeeded } = this;
    log.info({ actor, before, revision, number: next.number }, 'the configuration was reloaded');
    if (restartNeeded.length > 0) log.warn({ restartNeeded }, 'some changed settings take effect only after a restart');
    if (!AUTOMATIC.some((each) => each === actor)) await this.#options.spread?.();
    return { outcome: 'reloaded', before, revision, restartNeeded };
  }

  /** The watched file says again what an operator has reloaded, or what a refused text stood in for. */
  #keep(): ReloadOutcome {
    this.#lastFailure = undefined;
    lastReloadSuccessful.set(1);
    const { revision } = this.#current;
    return { outcome: 'reloaded', before: revision, revision, restartNeeded: this.restartNeeded };
  }

  async #makeReady(): Promise<Ready<C> | Refusal> {
    let next: C;
    try {
      next = await this.#options.read();
    } catch (error) {
      if (error instanceof ConfigurationError) return error;
      throw error;
    }
    try {
      return { next, commits: await Promise.all(this.#participants.map((prepare) => prepare(next))) };
    } catch (error) {
      this.#options.log.error({ error: describeFault(error) }, 'the new configuration could not be prepared');
      const message = 'is valid, but could not be activated; see the log';
      const problems = [{ file: 'gateway.config.yml', line: undefined, column: undefined, message }];
      return { number: next.number, problems };
    }
  }

  #refuse({ number, problems }: Refusal, actor: ReloadActor): ReloadOutcome {
    const { revision } = this.#current;
    this.#lastFailure = { at: new Date(), actor, number, problems };
    reloads.inc({ outcome: 'refused' });
    lastReloadSuccessful.set(0);
    this.#options.log.error(
      { actor, revision, refused: number, problems },
      'the configuration was not reloaded; the active one stays',
    );
    return { outcome: 'refused', revision, problems };
  }
}

function begins(): Date {
  const now = new Date();
  lastReloadSuccessful.set(1);
  inForceSince.set(now.getTime() / 1_000);
  return now;
}
