import type { IncomingHttpHeaders } from 'node:http';
import type { Span } from '@opentelemetry/api';
import type { Knex } from 'knex';
import { keysOfMember } from '../../../core/accounts/member-keys';
import { fail } from '../../../core/base/errors';
import { newId } from '../../../core/base/ids';
import { UUID } from '../../../core/storage/page';
import { contextIn, endSpan, tracer } from '../../../core/traces/tracing';
import type { Operation, Sandbox, SandboxFailure } from '../lifecycle/sandbox';
import type { OperationType } from '../lifecycle/states';
import { firstOf, toRow } from './rows';

/** The database, the database's clock, and the trace spans of operations. */
export interface Timed {
  readonly database: Knex;
  /** Returns the database's time in milliseconds since 1970. */
  now(): number;
  readonly spans?: OperationSpans | undefined;
}

/**
 * Returns the account's sandbox. Throws for a sandbox of another account, or one that is not accepted yet; with `memberId` also for one that no
 * key of this member made.
 * @throws SANDBOX_NOT_FOUND
 */
export async function findSandbox(database: Knex, accountId: string, id: string, memberId?: string): Promise<Sandbox> {
  if (!UUID.test(id)) throw fail('SANDBOX_NOT_FOUND');
  const found = database('sandboxes').where({ id, account_id: accountId, admission: 'ACCEPTED' });
  if (memberId !== undefined) found.whereIn('key_id', keysOfMember(memberId));
  const sandbox = await firstOf<Sandbox>(found);
  if (sandbox === undefined) throw fail('SANDBOX_NOT_FOUND');
  return sandbox;
}

/**
 * Records that an operation begins in a running sandbox, and that the sandbox is in use. `finishOperation` records its end.
 * `headers` are those of the request.
 */
export async function beginOperation(
  timed: Timed,
  sandboxId: string,
  { type, headers }: { readonly type: OperationType; readonly headers?: IncomingHttpHeaders | undefined },
): Promise<string> {
  const id = newId();
  const nowMs = timed.now();
  const begun = { id, sandboxId, type, status: 'RUNNING', cause: 'caller', requestedAtMs: nowMs, startedAtMs: nowMs };
  await timed.database('sandbox_operations').insert(toRow(begun));
  await touchSandbox(timed, sandboxId);
  timed.spans?.begin({ id, sandboxId, type }, headers);
  return id;
}

export async function finishOperation(
  { database, now, spans }: Timed,
  operationId: string,
  { status, error }: { readonly status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED'; readonly error?: SandboxFailure },
): Promise<void> {
  spans?.end(operationId, { status, error });
  await database('sandbox_operations')
    .where({ id: operationId })
    .whereIn('status', ['PENDING', 'RUNNING'])
    .update(toRow({ status, error, endedAtMs: now() }));
}

/** Records that the sandbox is in use: its idle time begins anew. */
export async function touchSandbox({ database, now }: Timed, sandboxId: string): Promise<void> {
  const at = new Date(now());
  await database('sandboxes').where({ id: sandboxId }).where('last_used_at', '<', at).update({ last_used_at: at });
}

export async function readOperation(database: Knex, sandboxId: string, id: string): Promise<Operation | undefined> {
  return UUID.test(id) ? firstOf(database('sandbox_operations').where({ id, sandbox_id: sandboxId })) : undefined;
}

type Begun = Pick<Operation, 'id' | 'sandboxId' | 'type'>;
type Ended = Pick<Operation, 'status'> & { readonly error?: Operation['error'] | undefined };

/**
 * Records spans of the operations in sandboxes: their kind and outcome, but never commands, paths or contents. Spans of lifecycle
 * operations have the database's times.
 */
export class OperationSpans {
  /** The spans that have not ended, by operation id. */
  readonly #open = new Map<string, Span>();

  /** Begins the span of an operation. `headers` are those of its request. */
  begin(operation: Begun, headers: IncomingHttpHeaders | undefined): void {
    const span = beginSpan(operation, headers);
    if (span.isRecording()) this.#open.set(operation.id, span);
  }

  /** Ends the span of an operation. Does nothing if another or an earlier process began it. */
  end(operationId: string, ended: Ended): void {
    const span = this.#open.get(operationId);
    this.#open.delete(operationId);
    if (span !== undefined) endOperation(span, ended);
  }
}

/**
 * Records the span of a lifecycle operation that has ended. It is made at the end, because another process may have begun the
 * operation.
 */
export function traceEnded(operation: Operation): void {
  const { requestedAtMs, endedAtMs } = operation;
  if (endedAtMs !== null) endOperation(beginSpan(operation, undefined, requestedAtMs), operation, endedAtMs);
}

function beginSpan({ id, sandboxId, type }: Begun, headers?: IncomingHttpHeaders, startTime?: number): Span {
  const attributes = { 'tollgate.sandbox_id': sandboxId, 'tollgate.operation_id': id, 'tollgate.operation': type };
  return tracer.startSpan(
    `sandbox ${type}`,
    { attributes, ...(startTime !== undefined && { startTime }) },
    contextIn(headers),
  );
}

function endOperation(span: Span, { status, error }: Ended, endTime?: number): void {
  endSpan(span, { 'tollgate.operation_status': status, 'error.type': error?.code }, status === 'FAILED', endTime);
}

const AT_ONCE = 500;

/**
 * Deletes sandboxes that ended before this time, with their operations, events, segments, periods and commands. Also deletes cleanups that
 * finished before this time. Ledger entries keep what was charged. Returns how many sandboxes it deleted.
 */
export async function forgetEnded(database: Knex, beforeMs: number): Promise<number> {
  const before = new Date(beforeMs);
  const ended = database('sandboxes')
    .whereIn('observed_state', ['FAILED', 'TERMINATED'])
    .where('ended_at', '<', before)
    .orderBy('ended_at')
    .limit(AT_ONCE)
    .select('id');
  let forgotten = 0;
  for (;;) {
    const deleted = await database('sandboxes').whereIn('id', ended.clone()).delete();
    forgotten += deleted;
    if (deleted < AT_ONCE) break;
  }
  await database('supplier_cleanup').where('done_at', '<', before).delete();
  return forgotten;
}
