import type { Logger } from 'pino';
import { Counter, Gauge } from 'prom-client';
import type { Configuration } from './configuration';
import { metrics } from './metrics';
import type { RestartNeeded } from './restart-needed';
import { describeFault } from './thrown';
import { ConfigurationError, type ConfigurationProblem } from './yaml-file';

/** Who asked for a reload, as the audit log names them. */
export type ReloadActor = 'admin' | 'signal' | 'file';

/**
 * Makes ready for another configuration; what it returns puts that into force. All are asked before any is put into force, and
 * one that throws refuses the configuration for all.
 */
export type Prepare = (next: Configuration) => Promise<() => void> | (() => void);

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
  readonly actor: ReloadActor;
  readonly problems: readonly ConfigurationProblem[];
}

const reloads = new Counter({
  name: 'tollgate_config_reloads_total',
  help: 'Reloads of the configuration, by how they ended.',
  labelNames: ['outcome'] as const,
  registers: [metrics],
});

const lastReloadSuccessful = new Gauge({
  name: 'tollgate_config_last_reload_successful',
  help: '0 while the files hold a configuration that was refused.',
  registers: [metrics],
});

const inForceSince = new Gauge({
  name: 'tollgate_config_in_force_timestamp_seconds',
  help: 'Since when the configuration is in force.',
  registers: [metrics],
});

/** The configuration in force, and the way to another one. */
export class LiveConfiguration {
  #current: Configuration;
  #since: Date;
  #lastFailure: RefusedReload | undefined;
  #running: Promise<unknown> = Promise.resolve();
  readonly #participants: Prepare[] = [];

  /** @param read reads the files again; @throws ConfigurationError */
  constructor(
    first: Configuration,
    private readonly read: () => Configuration,
    private readonly needsRestart: RestartNeeded,
    private readonly log: Logger,
  ) {
    this.#current = first;
    this.#since = begins();
    for (const outcome of ['reloaded', 'refused']) reloads.inc({ outcome }, 0);
  }

  get current(): Configuration {
    return this.#current;
  }

  get since(): Date {
    return this.#since;
  }

  /** Why the last reload was refused; undefined when it was not. */
  get lastFailure(): RefusedReload | undefined {
    return this.#lastFailure;
  }

  /** What the files say and a reload cannot take over. */
  get restartNeeded(): readonly string[] {
    return this.needsRestart(this.#current);
  }

  /** Has a say in every reload from now on. */
  take(prepare: Prepare): void {
    this.#participants.push(prepare);
  }

  /**
   * Reads the files and puts what they say into force, for every call that begins from then on; calls that run end with what they
   * began with. Files with mistakes change nothing. One reload at a time. Never rejects.
   */
  reload(actor: ReloadActor): Promise<ReloadOutcome> {
    const outcome = this.#running.then(() => this.#reload(actor));
    this.#running = outcome;
    return outcome;
  }

  async #reload(actor: ReloadActor): Promise<ReloadOutcome> {
    const before = this.#current.revision;
    try {
      const next = this.read();
      const commits = await Promise.all(this.#participants.map((prepare) => prepare(next)));
      // Nothing may come between these: a call sees all of one configuration.
      for (const commit of commits) commit();
      this.#current = next;
    } catch (error) {
      return this.#refuse(error, actor);
    }
    this.#since = begins();
    this.#lastFailure = undefined;
    reloads.inc({ outcome: 'reloaded' });
    const { revision } = this.#current;
    const { restartNeeded } = this;
    this.log.info({ actor, before, revision }, 'the configuration was reloaded');
    if (restartNeeded.length > 0) this.log.warn({ restartNeeded }, 'some of what was changed needs a restart');
    return { outcome: 'reloaded', before, revision, restartNeeded };
  }

  #refuse(error: unknown, actor: ReloadActor): ReloadOutcome {
    const { revision } = this.#current;
    const problems = this.#problemsOf(error);
    this.#lastFailure = { at: new Date(), actor, problems };
    reloads.inc({ outcome: 'refused' });
    lastReloadSuccessful.set(0);
    this.log.error({ actor, revision, problems }, 'the configuration was not reloaded: the one in force stays');
    return { outcome: 'refused', revision, problems };
  }

  #problemsOf(error: unknown): readonly ConfigurationProblem[] {
    if (error instanceof ConfigurationError) return error.problems;
    this.log.error({ error: describeFault(error) }, 'the configuration could not be prepared');
    const message = 'is sound, but could not be put into force; the log says why';
    return [{ file: 'gateway.config.yml', line: undefined, column: undefined, message }];
  }
}

function begins(): Date {
  const now = new Date();
  lastReloadSuccessful.set(1);
  inForceSince.set(now.getTime() / 1_000);
  return now;
}
