import type { Logger } from 'pino';
import { Counter } from 'prom-client';
import { metrics } from './metrics';

/**
 * This file counts timers and sockets that policies and plugins leave open when they read and prepare a configuration. Nothing
 * closes these resources, so every reload adds more. The start is not counted, because resources opened there may live as long
 * as the process.
 */

const leftOpen = new Counter({
  name: 'tollgate_plugin_left_open_total',
  help: 'Timers, sockets and other resources that a policy or plugin left open after reloads, by kind.',
  labelNames: ['by', 'resource'],
  registers: [metrics],
});

/** The kinds of resources, as Node names them, that end soon without being closed. */
const PASSING = /^(Immediate|FSReq\w+|\w+ReqWrap|\w*ConnectWrap)$/;

let log: Logger | undefined;
/** What policies and plugins have left open in the running reload: counts by owner and kind of resource. */
let found = new Map<string, Record<string, number>>();

/** Starts to count the resources that policies and plugins leave open, because the process serves clients from now on. */
export function countResourceLeaks(toLog: Logger): void {
  log = toLog;
}

/**
 * Runs the work of a policy or plugin for a configuration. Counts the resources that the work opens, leaves open and that keep the process
 * alive. Resources that it opens later, such as after an `await`, are not counted.
 */
export function detectLeaks<T>(owner: string, work: () => T): T {
  if (log === undefined) return work();
  const before = process.getActiveResourcesInfo();
  try {
    return work();
  } finally {
    const after = process.getActiveResourcesInfo();
    if (after.length > before.length) noteMore(owner, before, after);
  }
}

function noteMore(owner: string, before: readonly string[], after: readonly string[]): void {
  const counts = countEach(before);
  for (const [resource, count] of countEach(after)) {
    const left = count - (counts.get(resource) ?? 0);
    if (left > 0 && !PASSING.test(resource)) note(owner, resource, left);
  }
}

function countEach(resources: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const resource of resources) counts.set(resource, (counts.get(resource) ?? 0) + 1);
  return counts;
}

function note(by: string, resource: string, count: number): void {
  leftOpen.inc({ by, resource }, count);
  if (found.size === 0) setImmediate(logFound);
  const left = found.get(by) ?? {};
  left[resource] = (left[resource] ?? 0) + count;
  found.set(by, left);
}

/** Logs one line for each policy or plugin that left resources open. A policy in several pipelines gets one line with the sum. */
function logFound(): void {
  for (const [by, left] of found)
    log?.warn({ by, left }, 'a policy or plugin left resources open after a reload; each reload adds more');
  found = new Map();
}
