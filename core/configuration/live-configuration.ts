import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { Counter, Gauge } from 'prom-client';
import { metrics } from '../base/metrics';
import { safeErrorFields } from '../base/safe-error';
import type { OperatorActor } from '../storage/audit';
import type { Configuration } from './configuration';
import { ConfigurationError, type ConfigurationProblem } from './yaml-file';

/**
 * The actor that requested a reload, as the audit log names it. `revision`: this process follows the newest applied revision. `worker`: an
 * operator sent the request to another worker.
 */
export type ReloadActor = OperatorActor | Automatic;

const AUTOMATIC = ['signal', 'file', 'revision', 'worker'] as const;

type Automatic = (typeof AUTOMATIC)[number];

/**
 * Prepares one part of the process for the next configuration, and returns a function that puts it into force there. All parts prepare
 * before any part switches. If one throws, the configuration is refused for all.
 */
export type Prepare<C extends Configuration = Configuration> = (next: C) => Promise<() => void> | (() => void);

type ReloadOutcome =
  | {
      readonly outcome: 'reloaded';
      /** The hash of the revision that was in force before the reload. */
      readonly before: string;
      readonly revision: string;
      readonly restartNeeded: readonly string[];
    }
  | { readonly outcome: 'refused'; readonly revision: string; readonly problems: readonly ConfigurationProblem[] };

interface RefusedReload {
  readonly at: Date;
  /** The number of the applied revision that was refused; undefined if the configuration is read from files. */
  readonly number: number | undefined;
  readonly actor: ReloadActor;
  readonly problems: readonly ConfigurationProblem[];
}

/** The replacement of one configuration by another. */
export interface Replacement {
  readonly actor: ReloadActor;
  readonly before: Configuration;
  readonly after: Configuration;
}

interface LiveConfigurationOptions<C extends Configuration> {
  /** The configuration in force when the process starts. */
  readonly first: C;
  /** Reads the configuration that is to be in force now. @throws ConfigurationError */
  readonly read: () => Promise<C>;
  /** Records the replacement of the configuration after all parts of the process have prepared for it. If it rejects, the old configuration stays in force. */
  readonly record: (replacement: Replacement) => Promise<void>;
  readonly needsRestart: RestartNeeded;
  /** Makes the other workers reload when an operator requests a reload from this worker; undefined if there are no other workers. */
  readonly spread?: (() => Promise<unknown>) | undefined;
  readonly log: Logger;
}

/** A configuration for which all parts of the process have prepared. Its functions `commits` put the configuration into force. */
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

/** The configuration in force, and its replacement by a reload. */
export interface LiveConfiguration<C extends Configuration = Configuration> {
  readonly current: C;
  readonly since: Date;
  /** Why the last reload was refused; undefined when it succeeded. */
  readonly lastFailure: RefusedReload | undefined;
  /** The settings in the files that have changed since the start and apply only after a restart. */
  readonly restartNeeded: readonly string[];
  /** Adds a function that prepares one part of the process for every later reload of the configuration. */
  take(prepare: Prepare<C>): void;
  /** Calls the listener after each reload, whether it succeeded or was refused. */
  onOutcome(listener: () => void): void;
  /**
   * Reads the configuration and puts it into force for every later call. Running calls keep the configuration with which they began.
   * Nothing changes if the configuration has mistakes, or if a watched file equals the configuration in force. Reloads run one at a time.
   * Rejects, and changes nothing, if a store needed for reading or recording is unreachable.
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
  #whenOutcome = () => {};

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

  onOutcome(listener: () => void): void {
    this.#whenOutcome = listener;
  }

  reload(actor: ReloadActor): Promise<ReloadOutcome> {
    const outcome = this.#running.then(() => this.#reload(actor)).finally(() => this.#whenOutcome());
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
    // No other code may run while the parts of the process switch, because a call must never see a mix of two configurations.
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

  /**
   * Ends a file-triggered reload that changes nothing, because the file equals the active configuration. Either an operator has already
   * reloaded the file, or the file was restored after the gateway rejected a change.
   */
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
      this.#options.log.error({ error: safeErrorFields(error) }, 'the new configuration could not be prepared');
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

/** Returns the parts of the files that have changed since the start and that only a restart can apply. */
type RestartNeeded = (current: Configuration) => readonly string[];

export function restartNeededSince(first: Configuration, configFolder: string): RestartNeeded {
  const path = join(configFolder, 'system.config.yml');
  const system = textOf(path);
  return (current) => [
    ...(textOf(path) === system ? [] : ['system.config.yml']),
    ...(['http', 'https', 'admin'] as const)
      .filter((part) => !isDeepStrictEqual(current.gateway[part], first.gateway[part]))
      .map((part) => `gateway.config.yml: ${part}`),
  ];
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
