import { execFile } from 'node:child_process';
import type { AnswerEvent } from '../../core/catalog/answer';
import { type Conversation, NotTranslatable } from '../../core/catalog/conversation';
import { written } from '../fuzz/targets/requests';
import { requestOf } from '../fuzz/translation/client-requests';
import { CLIENTS, type Client, DIALECTS, UPSTREAMS } from '../fuzz/translation/directions';
import { writtenCall } from './golden';
import { ANSWERS, type Shape, TALKS } from './long-talks';
import { seeded } from './random';

/** Prepares work on this many entries. Only the returned function is measured. */
type Work = (entries: number) => () => void;

/** Below this cost a ratio says nothing. */
const LEAST_MS = 200;
const FEWEST = 50;
const MORE = 8;
const TRIES = 3;

/**
 * Returns how many times the CPU of `n` entries the work on `8 n` takes, the best of three tries; linear work takes 8 times. It
 * chooses `n` such that `8 n` costs at least 200 ms; undefined if even `most` entries cost less. The process should have
 * `--expose-gc`, so that no run pays for the garbage of another.
 * @param enough a ratio that ends the tries
 */
function cpuGrowth(work: Work, most: number, enough: number): number | undefined {
  let entries = FEWEST;
  let ms = cpuMsOf(work, entries * MORE);
  while (ms < LEAST_MS && entries * MORE < most) {
    // Work that is not linear would take minutes after a larger step.
    const factor = Math.min(Math.max((LEAST_MS * 1.2) / Math.max(ms, 1), 1.2), 5);
    entries = Math.min(Math.ceil(entries * factor), Math.ceil(most / MORE));
    ms = cpuMsOf(work, entries * MORE);
  }
  if (ms < LEAST_MS) return undefined;
  let best = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && best > enough; tries += 1) {
    if (tries > 0) ms = cpuMsOf(work, entries * MORE);
    best = Math.min(best, ms / cpuMsOf(work, entries));
  }
  return best;
}

/** Returns the process's own CPU for one run. */
function cpuMsOf(work: Work, entries: number): number {
  const run = work(entries);
  globalThis.gc?.();
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** Tells whether a dialect can express a shape. */
function isWritten(work: Work): boolean {
  try {
    work(16)();
    return true;
  } catch (error) {
    if (error instanceof NotTranslatable) return false;
    throw error;
  }
}

/** The work of one kind, by the name of the shape that grows. */
export interface LinearCase {
  readonly name: string;
  readonly most: number;
  readonly work: Work;
}

function casesOf<T>(shapes: readonly Shape<T>[], work: (made: T) => () => void): LinearCase[] {
  return shapes.map(({ name, most, make }) => ({ name, most, work: (entries) => work(make(entries)) }));
}

/** The work that must be linear, by what it does. */
export const LINEAR: ReadonlyMap<string, readonly LinearCase[]> = new Map([
  ...CLIENTS.map((client): [string, LinearCase[]] => [
    `a request of ${client} is read`,
    casesOf(TALKS, (talk) => {
      const body = JSON.parse(JSON.stringify(requestBy(client, talk)));
      return () => void DIALECTS[client].readRequest(body);
    }),
  ]),
  ...UPSTREAMS.map((upstream): [string, LinearCase[]] => [
    `a request of ${upstream} is written`,
    casesOf(TALKS, (talk) => () => void written(talk, upstream)),
  ]),
  ...CLIENTS.map((client): [string, LinearCase[]] => [
    `an answer of ${client} is written`,
    casesOf(ANSWERS, (events) => () => {
      writtenBy(client, events);
      DIALECTS[client].openWriter(writtenCall({})).body(events);
    }),
  ]),
  ...CLIENTS.map((client): [string, LinearCase[]] => [
    `an answer of ${client} is read`,
    casesOf(ANSWERS, (events) => {
      const sent = writtenBy(client, events);
      return () => {
        const reader = DIALECTS[client].openReader();
        for (const { name, data } of sent) reader.event({ name, data });
        reader.end();
      };
    }),
  ]),
]);

/** Writes a request as a program does. What its dialect has no form for is written as for an upstream. */
function requestBy(client: Client, talk: Conversation): object {
  try {
    return requestOf(seeded(1), client, talk);
  } catch {
    return written(talk, client);
  }
}

function writtenBy(client: Client, events: readonly AnswerEvent[]) {
  const writer = DIALECTS[client].openWriter(writtenCall({}));
  return events.flatMap((event) => writer.write(event));
}

/** What a process finds out about a case. `growth` is absent for work that is never dear enough to be measured. */
export interface Measured {
  readonly name: string;
  readonly growth?: number;
  /** What it threw. */
  readonly error?: string;
}

/** From n to 8 n entries. */
export const MOST_GROWTH = 12;

function measured({ name, most, work }: LinearCase): Measured {
  try {
    if (!isWritten(work)) return { name };
    const growth = cpuGrowth(work, most, MOST_GROWTH);
    return growth === undefined ? { name } : { name, growth };
  } catch (error) {
    return { name, error: String(error instanceof Error && error.cause !== undefined ? error.cause : error) };
  }
}

/** Measures one kind in a process of its own. Its heap has room for a whole run, because what a collection costs is not in proportion. */
export function measureApart(kind: string): Promise<readonly Measured[]> {
  const heap = ['--expose-gc', '--single-threaded-gc', '--min-semi-space-size=512', '--max-semi-space-size=512'];
  const flags = [...heap, '--require', 'tsx/cjs'];
  return new Promise((resolve, reject) => {
    const child = execFile(process.execPath, [...flags, __filename, kind], { maxBuffer: 1e8 }, (error, stdout) => {
      if (error === null)
        resolve(
          stdout
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as Measured),
        );
      else reject(error);
    });
    process.once('exit', () => child.kill());
  });
}

if (require.main === module)
  for (const each of LINEAR.get(process.argv[2] ?? '') ?? [])
    process.stdout.write(`${JSON.stringify(measured(each))}\n`);
