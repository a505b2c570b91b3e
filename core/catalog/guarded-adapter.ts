import { Counter } from 'prom-client';
import { log } from '../base/log';
import { metrics } from '../base/metrics';
import { safeErrorFields } from '../base/safe-error';
import { enter, ownerNumber } from '../base/watchdog';
import { withTimeout } from '../base/with-timeout';
import type { AnswerEvent, AnswerReader } from './answer';
import { NotTranslatable } from './conversation';
import { type Framing, type OwnDialect, readUsualError, type UpstreamAdapter } from './upstream';
import type { Usage } from './usage';

/** Reports that an adapter threw or returned an invalid value. The attempt then fails, whatever the upstream answered. */
export class AdapterFault extends Error {
  override readonly name = 'AdapterFault';

  constructor(
    readonly adapter: string,
    /** The name of the adapter's function that failed. */
    readonly place: string,
    cause: unknown,
  ) {
    super(`the adapter "${adapter}" failed in ${place}`, { cause });
  }
}

/** Wraps an adapter so that its faults fail one attempt instead of the call. Each exception becomes an AdapterFault, which the gateway logs and counts. */
export function guardAdapter(adapter: UpstreamAdapter): UpstreamAdapter {
  const { name, framing, own } = adapter;
  const guard = guardOf(name);
  const guardLater = <T>(place: string, work: () => T | Promise<T>): T | Promise<T> => {
    const result = guard(place, work);
    if (!(result instanceof Promise)) return result;
    return withTimeout(result, RESOLVES_WITHIN_MS, tooLate).catch((cause: unknown) => {
      report(name, place, cause);
      throw new AdapterFault(name, place, cause);
    });
  };
  return {
    ...adapter,
    request: (call, settings) => guard('request', () => adapter.request(call, settings)),
    authorize: (credential, settings) => guard('authorize', () => adapter.authorize(credential, settings)),
    ...(adapter.sign !== undefined && {
      sign: (request, credential, settings) =>
        guardLater('sign', () => adapter.sign?.(request, credential, settings) ?? {}),
    }),
    ...(framing !== undefined && { framing: guardFraming(framing, guard) }),
    judge: (failure) => guard('judge', () => adapter.judge(failure)),
    ...(own === undefined ? {} : { own: guardOwnDialect(own, guard) }),
  };
}

const RESOLVES_WITHIN_MS = 10_000;

function tooLate(): Error {
  return new Error(`the adapter's function did not resolve within ${RESOLVES_WITHIN_MS / 1_000} s`);
}

function guardOwnDialect(own: OwnDialect, guard: Guard): OwnDialect {
  return {
    dialect: own.dialect,
    request: (call, settings) => guard('request', () => own.request(call, settings)),
    answer: (call) =>
      guardReader(
        guard('answer', () => own.answer(call)),
        guard,
      ),
    readError: (body) => guard('readError', () => own.readError?.(body) ?? readUsualError(body)),
  };
}

function guardReader(reader: AnswerReader, guard: Guard): AnswerReader {
  return {
    event: (event) => guard('event', () => soundEvents(reader.event(event))),
    body: (body) => guard('body', () => soundEvents(reader.body(body))),
    end: () => guard('end', () => soundEvents(reader.end())),
  };
}

function soundEvents(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
  if (!Array.isArray(events)) throw new TypeError('expected the adapter to return a list of answer events');
  for (const event of events) {
    if (event.kind === 'usage') mustBePasses(event.usage);
    if (event.kind === 'add' && typeof event.text !== 'string')
      throw new TypeError('expected an answer event `add` of the adapter to have a string `text`');
  }
  return events;
}

type Guard = <T>(place: string, work: () => T) => T;

function guardFraming({ mediaType, open }: Framing, guard: Guard): Framing {
  return {
    mediaType,
    open: () => {
      const decoder = guard('framing', open);
      return { push: (chunk) => guard('framing', () => decoder.push(chunk)) };
    },
  };
}

/** Returns a function that runs an adapter's code. It converts exceptions to AdapterFaults, and notes for the watchdog that the adapter's code runs. */
export function guardOf(name: string): Guard {
  const owner = ownerNumber(`adapter ${name}`);
  return (place, work) => {
    const outer = enter(owner);
    try {
      return work();
    } catch (cause) {
      if (cause instanceof NotTranslatable || cause instanceof AdapterFault) throw cause;
      report(name, place, cause);
      throw new AdapterFault(name, place, cause);
    } finally {
      enter(outer);
    }
  };
}

/** Checks that the usage from an adapter has the right structure, because no compiler may have checked the adapter. Counts are checked at metering. */
function mustBePasses({ passes }: Usage): void {
  if (!Array.isArray(passes) || !passes.every(({ counts }) => counts instanceof Map))
    throw new TypeError('expected the adapter to report usage as { passes: [{ counts: Map }] }');
}

const faults = new Counter({
  name: 'tollgate_adapter_faults_total',
  help: 'Attempts that failed because an adapter threw an error, by adapter and function.',
  labelNames: ['adapter', 'place'],
  registers: [metrics],
});

/** The least milliseconds between two log lines about faults of an adapter, because a fault at every event must not fill the log. */
const LOGGED_EVERY_MS = 60_000;
const loggedAtMs = new Map<string, number>();

function report(adapter: string, place: string, cause: unknown): void {
  faults.inc({ adapter, place });
  const key = `${adapter} ${place}`;
  const nowMs = performance.now();
  if (nowMs - (loggedAtMs.get(key) ?? Number.NEGATIVE_INFINITY) < LOGGED_EVERY_MS) return;
  loggedAtMs.set(key, nowMs);
  log.error({ adapter, place, error: safeErrorFields(cause) }, 'an attempt failed because the adapter threw an error');
}
