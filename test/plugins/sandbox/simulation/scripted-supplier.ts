import {
  AlreadyExists,
  Ambiguous,
  type CreateOptions,
  type Inspection,
  InstanceGone,
  type InstanceReference,
  NotSent,
  Rejected,
  type SupplierDriver,
} from '../../../../plugins/sandbox/suppliers/supplier';

type State = 'starting' | 'running' | 'suspended' | 'ended';

interface Instance {
  readonly reference: InstanceReference;
  readonly tags: CreateOptions['tags'];
  readonly createdAtMs: number;
  readyAtMs: number;
  state: State;
  stoppedAtMs: number | undefined;
}

/** What happens to one call: its duration and its fault. */
export interface Fate {
  readonly latencyMs: number;
  readonly fault: 'none' | 'not-sent' | 'lost-answer' | 'late-effect' | 'rejected';
}

export interface SupplierScript {
  now(): number;
  /** Advances the time during a call; the world may change meanwhile. */
  pass(ms: number): Promise<void>;
  fate(verb: string): Fate;
  readyAfterMs(): number;
}

/** A supplier that knows when each instance really ran, whatever it reported. */
export class ScriptedSupplier {
  readonly instances = new Map<string, Instance>();
  /** The periods in which an instance existed, with their real states. */
  readonly lived: { state: 'starting' | 'running' | 'suspended'; fromMs: number; untilMs: number }[] = [];
  readonly #late: { atMs: number; effect: () => void }[] = [];
  #made = 0;

  constructor(readonly script: SupplierScript) {}

  get driver(): SupplierDriver {
    const call = <T>(verb: string, effect: () => T): Promise<T> => this.#call(verb, effect);
    return {
      capabilities: { uniqueName: true, ttl: 'none', suspend: 'memory' },
      create: (_spec: unknown, options: CreateOptions) => call('create', () => this.#create(options)),
      inspect: (reference: InstanceReference) => call('inspect', () => this.#inspect(reference)),
      suspend: (reference: InstanceReference) => call('suspend', () => this.#move(reference, 'running', 'suspended')),
      resume: (reference: InstanceReference) => call('resume', () => this.#move(reference, 'suspended', 'running')),
      terminate: (reference: InstanceReference) => call('terminate', () => this.#remove(reference.id)),
    } as unknown as SupplierDriver;
  }

  /** Applies delayed effects and makes instances ready. */
  settle(): void {
    const nowMs = this.script.now();
    for (const late of this.#late.splice(0)) {
      if (late.atMs > nowMs) this.#late.push(late);
      else this.#ignoring(late.effect);
    }
    for (const instance of this.instances.values()) {
      if (instance.state === 'starting' && instance.readyAtMs <= nowMs) {
        instance.state = 'running';
        this.#end(instance.readyAtMs);
        this.#begin('running', instance.readyAtMs);
      }
    }
  }

  get hasLateEffects(): boolean {
    return this.#late.length > 0;
  }

  stopByItself(): void {
    for (const instance of this.instances.values()) {
      if (instance.state !== 'running') continue;
      this.#end(this.script.now());
      instance.state = 'ended';
      instance.stoppedAtMs = this.script.now();
    }
  }

  /** Removes all instances, as the sweep for orphans does after the end. */
  removeAll(): number {
    const { size } = this.instances;
    for (const id of [...this.instances.keys()]) this.#remove(id);
    return size;
  }

  async #call<T>(verb: string, effect: () => T): Promise<T> {
    const { latencyMs, fault } = this.script.fate(verb);
    if (fault === 'not-sent') throw new NotSent('no connection');
    if (fault === 'rejected' && verb === 'create') throw new Rejected('no such size');
    await this.script.pass(latencyMs / 2);
    this.settle();
    if (fault === 'late-effect') {
      this.#late.push({ atMs: this.script.now() + latencyMs * 20, effect });
      throw new Ambiguous('no answer yet');
    }
    if (fault === 'lost-answer') {
      this.#ignoring(effect);
      throw new Ambiguous('no answer');
    }
    const answer = effect();
    await this.script.pass(latencyMs / 2);
    this.settle();
    return answer;
  }

  #ignoring(effect: () => unknown): void {
    try {
      effect();
    } catch {
      // The caller has gone, so that there is nothing to report.
    }
  }

  #create({ name, tags }: CreateOptions): InstanceReference {
    const there = [...this.instances.values()].find(({ reference }) => reference.name === name);
    if (there !== undefined) throw new AlreadyExists(there.reference);
    this.#made += 1;
    const reference = { id: `i${this.#made}`, name };
    const nowMs = this.script.now();
    const times = { createdAtMs: nowMs, readyAtMs: nowMs + this.script.readyAfterMs(), stoppedAtMs: undefined };
    this.instances.set(reference.id, { reference, tags, state: 'starting', ...times });
    this.#begin('starting', nowMs);
    return reference;
  }

  #inspect({ id }: InstanceReference): Inspection {
    const instance = this.instances.get(id);
    if (instance === undefined) return { kind: 'gone' };
    const { reference, tags, state, stoppedAtMs, createdAtMs } = instance;
    const endedAt = stoppedAtMs === undefined ? undefined : new Date(stoppedAtMs);
    return { kind: 'found', reference, tags, state, endedAt, incarnation: '', createdAt: new Date(createdAtMs) };
  }

  #move({ id }: InstanceReference, from: State, to: 'running' | 'suspended'): void {
    const instance = this.instances.get(id);
    if (instance === undefined) throw new InstanceGone('gone');
    if (instance.state !== from) return;
    this.#end(this.script.now());
    this.#begin(to, this.script.now());
    instance.state = to;
  }

  #remove(id: string): void {
    const instance = this.instances.get(id);
    if (instance === undefined) return;
    if (instance.state !== 'ended') this.#end(this.script.now());
    this.instances.delete(id);
  }

  #begin(state: 'starting' | 'running' | 'suspended', fromMs: number): void {
    this.lived.push({ state, fromMs, untilMs: Number.POSITIVE_INFINITY });
  }

  #end(untilMs: number): void {
    const last = this.lived.at(-1);
    if (last !== undefined && last.untilMs === Number.POSITIVE_INFINITY) last.untilMs = untilMs;
  }
}
