import type { CallKey } from '../../../core/accounts/identify';
import { fail } from '../../../core/base/errors';
import { accountFrozen, ledgerUnavailable } from '../../../core/ledger/unavailable';
import type { Aggregate, Change } from '../lifecycle/aggregate';
import { coverFor, dueE8 } from '../lifecycle/billing';
import { newOperation, request } from '../lifecycle/lifecycle';
import type { Operation } from '../lifecycle/sandbox';
import { isFinal, type LifecycleVerb } from '../lifecycle/states';
import { hourlyE8 } from '../offerings/offering';
import type { SandboxService } from '../service';
import { findSandbox } from '../store/queries';
import { firstOf, toRow } from '../store/rows';
import { unpaid } from './admission';

export type Verb = Exclude<LifecycleVerb, 'CREATE'>;

interface ChangeRequest {
  readonly verb: Verb;
  readonly idempotencyKey?: string | undefined;
  /** The state versions that the caller's `If-Match` accepts. undefined: any version. */
  readonly ifMatch?: readonly number[] | undefined;
  readonly cause?: string;
}

/** How many times a request tries to write its change. A try fails if a worker has changed the sandbox since it was read. */
const TRIES = 40;
const TRY_AGAIN_MS = 25;

/**
 * Requests another state of a sandbox and returns the operation. If the state is already reached, the returned operation is a `noop`. If
 * the same request is already in progress, the operation is that of the earlier request.
 * @throws SANDBOX_NOT_FOUND, SANDBOX_FINAL, PRECONDITION_FAILED, STATE_CHANGE_IN_PROGRESS, SANDBOX_NOT_RUNNING, NOT_SUPPORTED,
 * INSUFFICIENT_BALANCE, KEY_LIMIT_EXCEEDED, LEDGER_UNAVAILABLE
 */
export async function ask(
  service: SandboxService,
  key: Pick<CallKey, 'accountId'>,
  id: string,
  asked: ChangeRequest,
): Promise<Operation> {
  await findSandbox(service.database, key.accountId, id);
  for (let tries = 0; tries < TRIES; tries += 1) {
    const aggregate = await service.store.load(id);
    if (aggregate === undefined) throw fail('SANDBOX_NOT_FOUND');
    const before = await findOperation(service, id, asked);
    if (before !== undefined) return before;
    requireVersion(aggregate, asked);
    const answer = answerNow(aggregate, asked.verb);
    if (answer !== undefined && answer !== 'noop') return answer;
    const operation =
      answer === 'noop' ? await insertNoop(service, id, asked) : await tryRequest(service, aggregate, asked);
    if (operation !== undefined) return operation;
    await new Promise((wake) => setTimeout(wake, TRY_AGAIN_MS));
  }
  throw fail('STATE_CHANGE_IN_PROGRESS', { retryable: true, retryAfterSeconds: 1 });
}

async function findOperation({ database }: SandboxService, sandboxId: string, { idempotencyKey, verb }: ChangeRequest) {
  if (idempotencyKey === undefined) return undefined;
  const same = { sandbox_id: sandboxId, type: verb, idempotency_key: idempotencyKey };
  return firstOf<Operation>(database('sandbox_operations').where(same));
}

function requireVersion({ sandbox }: Aggregate, { ifMatch }: ChangeRequest): void {
  if (ifMatch === undefined || ifMatch.includes(sandbox.stateVersion)) return;
  throw fail('PRECONDITION_FAILED', { details: { stateVersion: sandbox.stateVersion } });
}

/** Returns the answer if the request needs no change: `noop` or the operation in progress. Otherwise returns undefined. */
function answerNow({ sandbox, operation }: Aggregate, verb: Verb): 'noop' | Operation | undefined {
  const { observedState, desiredState } = sandbox;
  if (isFinal(observedState)) {
    if (verb === 'TERMINATE') return 'noop';
    throw fail('SANDBOX_FINAL');
  }
  if (operation?.type === verb) return operation;
  if (verb === 'TERMINATE') return undefined;
  if (desiredState !== null || sandbox.finalState !== null)
    throw fail('STATE_CHANGE_IN_PROGRESS', { retryable: true, retryAfterSeconds: 2 });
  if (!sandbox.offering.lifecycle.suspension.supported) throw fail('NOT_SUPPORTED');
  if (observedState === (verb === 'SUSPEND' ? 'SUSPENDED' : 'RUNNING')) return 'noop';
  if (observedState === 'UNKNOWN') throw fail('SANDBOX_NOT_RUNNING', { details: { observedState } });
  return undefined;
}

/** Writes a `noop` operation. Returns undefined if a concurrent request with the same idempotency key wrote one first. */
async function insertNoop(
  { database, now }: SandboxService,
  sandboxId: string,
  asked: ChangeRequest,
): Promise<Operation | undefined> {
  const nowMs = now();
  const { verb, cause = 'caller', idempotencyKey = null } = asked;
  const begun = newOperation(sandboxId, verb, { cause, idempotencyKey, nowMs });
  const operation: Operation = { ...begun, status: 'SUCCEEDED', endedAtMs: nowMs, noop: true };
  const inserted = await database('sandbox_operations').insert(toRow(operation)).onConflict().ignore().returning('id');
  return inserted.length === 0 ? undefined : operation;
}

/** Writes the request for another state of a sandbox. Returns undefined if the sandbox has changed since it was read. */
async function tryRequest(
  service: SandboxService,
  aggregate: Aggregate,
  { verb, idempotencyKey, cause = 'caller' }: ChangeRequest,
): Promise<Operation | undefined> {
  const paid = verb === 'RESUME' ? await payAhead(service, aggregate) : {};
  if (paid === undefined) return undefined;
  const nowMs = service.now();
  const asked = request(aggregate, verb, { cause, source: 'caller', idempotencyKey: idempotencyKey ?? null, nowMs });
  const written = await service.store.commit(aggregate, { ...asked, ...paid }, nowMs);
  return written === undefined ? undefined : written.operation;
}

/** Enlarges the hold before a resumption, because running costs more than being suspended. Returns undefined while the period is being settled. */
async function payAhead(service: SandboxService, aggregate: Aggregate): Promise<Pick<Change, 'periods'> | undefined> {
  const { period, sandbox } = aggregate;
  if (period === undefined) return undefined;
  const nowMs = service.now();
  const cover = coverFor(dueE8(aggregate, nowMs), hourlyE8(sandbox.offering, 'RUNNING'), nowMs, service.timings);
  if (cover.reservedE8 <= period.reservedE8) return {};
  const { accountId, keyId, holdId: rid } = period;
  const hold = { accountId, keyId, rid, lifetimeMs: undefined, amountE8: cover.reservedE8 };
  const answer = await service.gateway.ledger.renew(hold);
  switch (answer.outcome) {
    case 'renewed':
      return { periods: [{ ...period, reservedE8: cover.reservedE8 }] };
    case 'insufficient_balance':
    case 'limit_exceeded':
      throw unpaid(answer, cover.reservedE8 - period.reservedE8);
    case 'frozen':
      throw accountFrozen();
    case 'not_ready':
      throw ledgerUnavailable();
    default:
      return undefined;
  }
}
