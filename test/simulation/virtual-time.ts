/**
 * Takes the place of the process's clock and timers: hours pass in an instant, in the same order every time. Only what
 * waits by setTimeout, setInterval, Date.now or performance.now is moved; promises settle as ever.
 */
export interface VirtualTime {
  now(): number;
  /** Runs what is due until the condition holds, or that long has passed. */
  run(withinMs: number, until?: () => boolean): Promise<void>;
  /** Gives the real ones back. */
  restore(): void;
}

interface Timer {
  readonly at: number;
  readonly order: number;
  readonly every: number | undefined;
  readonly work: () => void;
}

export function installVirtualTime(startMs: number): VirtualTime {
  const real = { setTimeout, clearTimeout, setInterval, clearInterval, now: Date.now };
  const nextTurn = setImmediate;
  const timers = new Map<number, Timer>();
  let now = startMs;
  let order = 0;

  const add = (work: (...args: unknown[]) => void, ms = 0, every: boolean, args: unknown[]) => {
    order += 1;
    const id = order;
    const wait = Math.max(1, Number(ms) || 0);
    timers.set(id, { at: now + wait, order: id, every: every ? wait : undefined, work: () => work(...args) });
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
  };
  Object.assign(globalThis, replaced);
  Date.now = () => now;
  Object.defineProperty(performance, 'now', { value: () => now, configurable: true });

  const next = (): [number, Timer] | undefined => {
    let first: [number, Timer] | undefined;
    for (const each of timers) {
      const [, { at, order: own }] = each;
      if (first === undefined || at < first[1].at || (at === first[1].at && own < first[1].order)) first = each;
    }
    return first;
  };
  /** Lets promises that are settled run on: what they do may set new timers. */
  const settle = () => new Promise<void>((done) => nextTurn(done));

  return {
    now: () => now,
    run: async (withinMs, until = () => false) => {
      const end = now + withinMs;
      await settle();
      for (let due = next(); due !== undefined && due[1].at <= end && !until(); due = next()) {
        const [id, { at, every, work }] = due;
        now = at;
        timers.delete(id);
        if (every !== undefined) timers.set(id, { at: now + every, order: id, every, work });
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
      });
      Date.now = real.now;
      Reflect.deleteProperty(performance, 'now');
    },
  };
}
