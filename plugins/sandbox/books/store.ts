import type { IncomingHttpHeaders } from 'node:http';
import type { Knex } from 'knex';
import { fail } from '../../../core/errors';
import { newId } from '../../../core/ids';
import { UUID } from '../../../core/storage/page';
import type { Failure, Operation, Sandbox } from '../life/sandbox';
import type { OperationType } from '../life/states';
import type { OperationSpans } from './operation-spans';
import { fromRow, toRow } from './rows';

/** Rows, the time that is written in them, and the spans of what is done. */
export interface Timed {
  readonly database: Knex;
  /** Milliseconds since 1970, by the database's clock. */
  now(): number;
  readonly spans?: OperationSpans | undefined;
}

/** The account's own sandbox. One that is not accepted yet, or another account's, is not there. @throws SANDBOX_NOT_FOUND */
export async function findSandbox(database: Knex, accountId: string, id: string): Promise<Sandbox> {
  const [row]: Record<string, unknown>[] = UUID.test(id)
    ? await database('sandboxes').where({ id, account_id: accountId, admission: 'ACCEPTED' })
    : [];
  if (row === undefined) throw fail('SANDBOX_NOT_FOUND');
  return fromRow<Sandbox>(row);
}

/** Writes that something is being done in a running sandbox; it has been used. `finishOperation` closes it. `headers` are those of the request. */
export async function beginOperation(
  timed: Timed,
  sandboxId: string,
  {
    type,
    cause = 'caller',
    headers,
  }: {
    readonly type: OperationType;
    readonly cause?: string;
    readonly headers?: IncomingHttpHeaders | undefined;
  },
): Promise<string> {
  const id = newId();
  const nowMs = timed.now();
  const times = { requestedAtMs: nowMs, startedAtMs: nowMs };
  await timed.database('sandbox_operations').insert(toRow({ id, sandboxId, type, status: 'RUNNING', cause, ...times }));
  await touchSandbox(timed, sandboxId);
  timed.spans?.begin({ id, sandboxId, type }, headers);
  return id;
}

export async function finishOperation(
  { database, now, spans }: Timed,
  operationId: string,
  {
    status,
    result,
    error,
  }: {
    readonly status: 'SUCCEEDED' | 'FAILED' | 'CANCELLED';
    readonly result?: object;
    readonly error?: Failure;
  },
): Promise<void> {
  spans?.end(operationId, { status, error });
  await database('sandbox_operations')
    .where({ id: operationId })
    .whereIn('status', ['PENDING', 'RUNNING'])
    .update(toRow({ status, result, error, endedAtMs: now() }));
}

/** It has been used: its idle time begins anew. */
export async function touchSandbox({ database, now }: Timed, sandboxId: string): Promise<void> {
  const at = new Date(now());
  await database('sandboxes').where({ id: sandboxId }).where('last_used_at', '<', at).update({ last_used_at: at });
}

export async function readOperation(database: Knex, sandboxId: string, id: string): Promise<Operation | undefined> {
  const [row]: Record<string, unknown>[] = UUID.test(id)
    ? await database('sandbox_operations').where({ id, sandbox_id: sandboxId })
    : [];
  return row === undefined ? undefined : fromRow<Operation>(row);
}
