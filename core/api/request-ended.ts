import type { IncomingMessage, ServerResponse } from 'node:http';
import { Counter } from 'prom-client';
import type { AccessLog } from '../base/access-log';
import { getOrInsert } from '../base/collections';
import type { GatewayError } from '../base/errors';
import { metrics } from '../base/metrics';
import { Buckets, QuickHistogram } from '../base/quick-histogram';
import { CLIENT_LEFT_STATUS } from '../http/client-left';
import type { Route } from './route';

/** Facts for metrics and log about a request to the gateway's own API, or about a request that was refused before it reached a route. */
export interface RequestFacts {
  readonly id: string;
  readonly startedMs: number;
  /** The route that serves the request; undefined if no route matches. */
  readonly route?: Pick<Route, 'path' | 'isAskedOften'> | undefined;
  accountId?: string | undefined;
  keyId?: string | undefined;
  errorCode?: string | undefined;
}

const SECONDS = [0.005, 0.025, 0.1, 0.5, 2.5, 10, 60];
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);
/** The label for unknown paths and methods, because text that clients choose must not create new labels. */
const OTHER = 'other';
/** The route label for a request that is not valid HTTP. */
const BROKEN = { path: 'broken' };

interface Count {
  readonly labels: Readonly<Record<'route' | 'method' | 'status' | 'code', string>>;
  requests: number;
}

const counts = new Map<string, Count>();
const durations = new Map<string, Buckets>();
let lines: AccessLog | undefined;

/** Sets the log that receives a line for each request from now on. */
export function logRequests(log: AccessLog): void {
  lines = log;
}

/** Counts an ended request in the metrics, and logs it. */
export function requestEnded(facts: RequestFacts, request: IncomingMessage, response: ServerResponse): void {
  const hasLeft = response.destroyed && !response.writableFinished;
  const status = hasLeft ? CLIENT_LEFT_STATUS : response.statusCode;
  const code = hasLeft ? 'CLIENT_LEFT' : facts.errorCode;
  const method = METHODS.has(request.method ?? '') ? `${request.method}` : OTHER;
  countAndLog(facts, { method, status, code });
}

/** Counts a request that was refused because it is not valid HTTP, and logs it. */
export function brokenRequestEnded(id: string, { status, code }: GatewayError): void {
  countAndLog({ id, startedMs: performance.now(), route: BROKEN }, { method: OTHER, status, code });
}

interface Outcome {
  readonly method: string;
  readonly status: number;
  readonly code: string | undefined;
}

function countAndLog(facts: RequestFacts, { method, status, code }: Outcome): void {
  const { route, startedMs } = facts;
  const path = route?.path ?? OTHER;
  const ms = performance.now() - startedMs;
  const labels = { route: path, method, status: `${Math.floor(status / 100)}xx`, code: code ?? 'none' };
  const name = Object.values(labels).join(' ');
  getOrInsert<Count>(counts, name, () => ({ labels, requests: 0 })).requests += 1;
  getOrInsert(durations, path, () => new Buckets(SECONDS)).observe(ms / 1_000);
  const hasFailed = status >= 400;
  if (lines === undefined || (route?.isAskedOften && !hasFailed) || !lines.takes(hasFailed)) return;
  const { id: requestId, keyId, accountId } = facts;
  const members = { requestId, method, route: path, keyId, accountId, status, code, ms: Math.round(ms) };
  lines.write('request', `,${JSON.stringify(members).slice(1, -1)}`);
}

new Counter({
  name: 'tollgate_api_requests_total',
  help: 'Requests that are not model calls, by route: `other` for no route, `host` for a host of a plugin, `upgrade` for protocol upgrades, `preflight` for CORS preflights, `broken` for requests rejected before they were read.',
  labelNames: ['route', 'method', 'status', 'code'],
  registers: [metrics],
  collect() {
    this.reset();
    for (const { labels, requests } of counts.values()) this.inc(labels, requests);
  },
});
new QuickHistogram({ name: 'tollgate_api_request_duration_seconds', help: 'Their time.' }, () =>
  [...durations].map(([route, buckets]) => ({ labels: { route }, buckets })),
);
