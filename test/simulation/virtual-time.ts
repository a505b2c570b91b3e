import timersPromises from 'node:timers/promises';

/**
 * Replaces the process's clock and timers: hours pass in an instant, always in the same order. Only setTimeout, setInterval, Date.now and
 * performance.now are virtual; promises settle as usual.
 */
export interface VirtualTime {
  now(): number;
  /** Runs work on this machine: its timers belong to the machine, and it sees the machine's clocks. */
  as<T>(machine: Machine | undefined, work: () => T): T;
  /** Suspends a machine for this time. Its monotonic clock may stop meanwhile; its time of day continues. */
  suspend(machine: Machine, ms: number, stopsClock: boolean): void;
  /** Stops a machine for ever. */
  kill(machine: Machine): void;
  /** Runs what is due until the condition holds, or until this time has passed. */
  run(withinMs: number, until?: () => boolean): Promise<void>;
  /** Restores the real clock and timers. */
  restore(): void;
}

/** A machine with its own clocks. */
export interface Machine {
  isDead: boolean;
  /** The difference between its time of day and the true time. */
  wallMs: number;
  /** How long its monotonic clock has stood still. */
  stoodMs: number;
  suspendedUntil: number;
}

interface Timer {
  readonly machine: Machine | undefined;
  readonly at: number;
  readonly order: number;
  readonly every: number | undefined;
  readonly work: () => void;
}

export function installVirtualTime(startMs: number): VirtualTime {
  const real = { setTimeout, clearTimeout, setInterval, clearInterval, setImmediate, now: Date.now };
  const realSleep = timersPromises.setTimeout;
  const nextTurn = setImmediate;
  const timers = new Map<number, Timer>();
  let now = startMs;
  let order = 0;
  let machine: Machine | undefined;
  let immediates = 0;

  const add = (work: (...args: unknown[]) => void, ms = 0, every: boolean, args: unknown[]) => {
    order += 1;
    const id = order;
    const wait = Math.max(1, Number(ms) || 0);
    const at = Math.max(now, machine?.suspendedUntil ?? 0) + wait;
    const timer = { machine, at, order: id, every: every ? wait : undefined, work: () => work(...args) };
    if (machine?.isDead !== true) timers.set(id, timer);
    const handle = { id, unref: () => handle, ref: () => handle, [Symbol.toPrimitive]: () => id };
    return handle;
  };
  const remove = (handle: { id: number } | undefined) => {
    if (handle !== undefined) timers.delete(handle.id);
  };
  const replaced: Record<string, unknown> = {
    setTimeout: (work: () => void, ms?: number, ...args: unknown[]) => add(work, ms, false, args),
    setInterval: (work: () => void, ms?: number, ...args: unknown[]) => add(work, ms, true, args),
    clearTimeout: remove,
    clearInterval: remove,
    setImmediate: (work: (...args: unknown[]) => void, ...args: unknown[]) => {
      const own = machine;
      immediates += 1;
      return nextTurn(() => {
        immediates -= 1;
        machine = own;
        if (own?.isDead !== true) work(...args);
      });
    },
  };
  Object.assign(globalThis, replaced);
  Object.assign(timersPromises, {
    setTimeout: <T>(ms: number, value: T) => new Promise<T>((wake) => add(() => wake(value), ms, false, [])),
  });
  Date.now = () => now + (machine?.wallMs ?? 0);
  Object.defineProperty(performance, 'now', { value: () => now - (machine?.stoodMs ?? 0), configurable: true });

  const next = (): [number, Timer] | undefined => {
    let first: [number, Timer] | undefined;
    for (const each of timers) {
      const [, { at, order: own }] = each;
      if (first === undefined || at < first[1].at || (at === first[1].at && own < first[1].order)) first = each;
    }
    return first;
  };
  /** Lets settled promises continue, because they may set new timers. */
  const settle = async () => {
    do await new Promise<void>((done) => nextTurn(done));
    while (immediates > 0);
    machine = undefined;
  };

  return {
    now: () => now,
    as: (other, work) => {
      const before = machine;
      machine = other;
      try {
        return work();
      } finally {
        machine = before;
      }
    },
    suspend: (other, ms, stopsClock) => {
      other.suspendedUntil = now + ms;
      if (stopsClock) other.stoodMs += ms;
      for (const [id, timer] of timers) {
        if (timer.machine !== other) continue;
        timers.set(id, { ...timer, at: stopsClock ? timer.at + ms : Math.max(timer.at, now + ms) });
      }
    },
    kill: (other) => {
      other.isDead = true;
      for (const [id, timer] of timers) if (timer.machine === other) timers.delete(id);
    },
    run: async (withinMs, until = () => false) => {
      const end = now + withinMs;
      await settle();
      for (let due = next(); due !== undefined && due[1].at <= end && !until(); due = next()) {
        const [id, { at, every, work, ...timer }] = due;
        now = at;
        machine = timer.machine;
        timers.delete(id);
        if (every !== undefined) timers.set(id, { ...timer, at: now + every, every, work });
        work();
        await settle();
      }
      if (!until()) now = end;
    },
    restore: () => {
      Object.assign(globalThis, {
        setTimeout: real.setTimeout,
        clearTimeout: real.clearTimeout,
        setInterval: real.setInterval,
        clearInterval: real.clearInterval,
        setImmediate: real.setImmediate,
      });
      Object.assign(timersPromises, { setTimeout: realSleep });
      Date.now = real.now;
      Reflect.deleteProperty(performance, 'now');
    },
  };
}
