import type { IncomingHttpHeaders } from 'node:http';
import type { Knex } from 'knex';
import { fail } from '../../../core/errors';
import { newId } from '../../../core/ids';
import { UUID } from '../../../core/storage/page';
import type { Failure, Operation, Sandbox } from '../life/sandbox';
import type { OperationType } from '../life/states';
import type { OperationSpans } from './operation-spans';
import { fromRow, toRow } from './rows';

/** The database, its time, and the spans of operations. */
export interface Timed {
  readonly database: Knex;
  /** Returns the database's time in milliseconds since 1970. */
  now(): number;
  readonly spans?: OperationSpans | undefined;
}

/**
 * Returns the account's sandbox. Throws for a sandbox of another account, or one that is not accepted yet.
 * @throws SANDBOX_NOT_FOUND
 */
export async function findSandbox(database: Knex, accountId: string, id: string): Promise<Sandbox> {
  const [row]: Record<string, unknown>[] = UUID.test(id)
    ? await database('sandboxes').where({ id, account_id: accountId, admission: 'ACCEPTED' })
    : [];
  if (row === undefined) throw fail('SANDBOX_NOT_FOUND');
  return fromRow<Sandbox>(row);
}

/**
 * Records that an operation begins in a running sandbox, and that the sandbox is in use. `finishOperation` records its end.
 * `headers` are those of the request.
 */
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

/** Records that the sandbox is in use: its idle time begins anew. */
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
