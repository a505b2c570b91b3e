import type { Knex } from 'knex';
import type { CallKey } from '../../../core/accounts/identify';
import { missingMoney, refusedTags } from '../../../core/accounts/missing-money';
import { limitCreates } from '../../../core/accounts/rates';
import { type ErrorCode, fail, type GatewayError } from '../../../core/base/errors';
import { newId } from '../../../core/base/ids';
import { parseUsd } from '../../../core/base/money';
import { missingTag } from '../../../core/calls/tags';
import type { MoneyMissing, Payer, ReserveOutcome } from '../../../core/ledger/ledger';
import { accountFrozen, ledgerUnavailable } from '../../../core/ledger/unavailable';
import type { Change } from '../lifecycle/aggregate';
import { newOperation } from '../lifecycle/lifecycle';
import type { Period, Sandbox } from '../lifecycle/sandbox';
import type { OfferedInstance } from '../offerings/offering';
import { chooseOffering } from '../offerings/requirements';
import type { SandboxService } from '../service';
import { claimQuote, redeemable, withdraw } from '../store/quotes';
import { firstOf, toRow } from '../store/rows';
import type { Creation } from './creation';

/** The number of sandboxes that one account may have active at once. */
export const MAX_ACTIVE_SANDBOXES = 20;

/**
 * Makes a sandbox once per idempotency key and returns its id. It writes the row first, while no client sees it, then takes the
 * hold in the ledger, and only then accepts the sandbox. A retry with the same key, or the sweep of stale creations, may repeat
 * every step.
 */
export async function admit(service: SandboxService, key: CallKey, creation: Creation): Promise<string> {
  const { database } = service;
  // The route has just confirmed the key, so that its settings are the newest.
  const untagged = missingTag(key.settings.requiredTags, creation.tags);
  if (untagged !== undefined) throw untagged;
  const before = await findByKey(database, key.accountId, creation.idempotencyKey);
  if (before !== undefined) return continueCreation(service, key, sameCreation(before, creation));
  await limitCreates(database, key.accountId, service.now());
  const chosen = await choose(service, key.accountId, creation);
  supportsPolicy(chosen, creation);
  return continueCreation(service, key, sameCreation(await begin(service, key, creation, chosen), creation));
}

async function findByKey(database: Knex, accountId: string, idempotencyKey: string): Promise<Sandbox | undefined> {
  return firstOf(database('sandboxes').where({ account_id: accountId, idempotency_key: idempotencyKey }));
}

function sameCreation(sandbox: Sandbox, { requestHash }: Creation): Sandbox {
  if (sandbox.requestHash !== requestHash) throw fail('IDEMPOTENCY_CONFLICT', { param: 'idempotencyKey' });
  return sandbox;
}

async function choose(service: SandboxService, accountId: string, { selection }: Creation): Promise<OfferedInstance> {
  const offered = service.offerings();
  if ('quoteId' in selection) return redeemable(service.database, accountId, selection.quoteId, offered, service.now());
  return chooseOffering(offered, selection, 'selection.');
}

function supportsPolicy({ offering }: OfferedInstance, { policy }: Creation): void {
  const { resumeOnAccess, suspension } = offering.lifecycle;
  if (policy.resumeOnAccess && !resumeOnAccess) {
    throw fail('POLICY_UNSUPPORTED', { param: 'policy.resumeOnAccess' });
  }
  if (policy.onFundsExhausted === 'suspend' && !suspension.supported) {
    throw fail('POLICY_UNSUPPORTED', { param: 'policy.onFundsExhausted' });
  }
}

/**
 * Writes the pending sandbox. Creations of one account run one after the other. If a concurrent request used the same key, its
 * sandbox is returned instead.
 */
async function begin(
  service: SandboxService,
  key: CallKey,
  creation: Creation,
  chosen: OfferedInstance,
): Promise<Sandbox> {
  return service.database.transaction(async (transaction) => {
    await transaction('accounts').where({ id: key.accountId }).forUpdate().select('id');
    const raced = await findByKey(transaction, key.accountId, creation.idempotencyKey);
    if (raced !== undefined) return raced;
    if ((await countActive(transaction, key.accountId)) >= MAX_ACTIVE_SANDBOXES) {
      throw fail('ACTIVE_INSTANCE_LIMIT', { details: { limit: MAX_ACTIVE_SANDBOXES } });
    }
    service.requireSupplier(chosen.offering.supplier);
    const nowMs = service.now();
    const place = service.isWorker ? service.places.homeOf(chosen.offering.supplier) : null;
    const sandbox = { ...newSandbox(key, creation, chosen, nowMs), place };
    const { selection } = creation;
    if ('quoteId' in selection && !(await claimQuote(transaction, selection.quoteId, sandbox.id, nowMs))) {
      throw fail('QUOTE_USED', { param: 'selection.quoteId' });
    }
    await transaction('sandboxes').insert(toRow(sandbox));
    const operation = newOperation(sandbox.id, 'CREATE', {
      cause: 'caller',
      idempotencyKey: creation.idempotencyKey,
      nowMs,
    });
    await transaction('sandbox_operations').insert(toRow(operation));
    await transaction('billing_periods').insert(toRow(firstPeriod(sandbox, service.timings.holdAheadMs)));
    return sandbox;
  });
}

async function countActive(transaction: Knex, accountId: string): Promise<number> {
  const [row] = await transaction('sandboxes')
    .where({ account_id: accountId })
    .whereNotIn('observed_state', ['FAILED', 'TERMINATED'])
    .whereNot({ admission: 'CANCELLED' })
    .count({ count: '*' });
  return Number(row?.['count'] ?? 0);
}

/** Takes the hold (the promised money) and accepts the sandbox. Concurrent retries of one request may all do this, but only the first has an effect. */
async function continueCreation(service: SandboxService, key: CallKey, sandbox: Sandbox): Promise<string> {
  if (sandbox.admission === 'ACCEPTED') return sandbox.id;
  if (sandbox.admission === 'CANCELLED') throw ledgerUnavailable();
  const first = service.database('billing_periods').where({ sandbox_id: sandbox.id, sequence: 1 });
  const period = await firstOf<Period>(first);
  if (period === undefined) throw ledgerUnavailable();
  const outcome = await reserve(service, key, period, sandbox.tags);
  if (outcome.outcome !== 'reserved') {
    if (await withdraw(service.database, sandbox.id, 'PENDING')) throw refusalOf(outcome, period.reservedE8);
  } else if (await accept(service, sandbox, period)) {
    return sandbox.id;
  }
  return afterAll(service, period);
}

/**
 * Takes the hold. The API key that created the sandbox pays, even if a retry uses another key of the account.
 * @throws LEDGER_UNAVAILABLE; the sandbox's row stays, and a retry continues with it
 */
async function reserve(
  { gateway }: SandboxService,
  key: CallKey,
  period: Period,
  tags: string | null,
): Promise<ReserveOutcome> {
  const { accountId, keyId, holdId: rid, reservedE8: amountE8 } = period;
  const request = { accountId, keyId, rid, amountE8, lifetimeMs: undefined, tags: tags ?? undefined };
  const own = key.keyId === keyId ? key.settings.rev : Number.MAX_SAFE_INTEGER;
  const outcome = await gateway.ledger.reserve({ ...request, keyRev: own });
  if (outcome.outcome === 'not_ready') throw ledgerUnavailable();
  if (outcome.outcome !== 'stale_key') return outcome;
  gateway.keys.remember(key, outcome.settings);
  return gateway.ledger.reserve({ ...request, keyRev: outcome.settings.rev });
}

/** Accepts a pending sandbox. Returns false if it was no longer pending. */
async function accept({ store, now }: SandboxService, sandbox: Sandbox, period: Period): Promise<boolean> {
  const nowMs = now();
  const before = { sandbox, operation: undefined, segment: undefined, period, settling: [], lines: [], isBusy: false };
  const set = { acceptedAtMs: nowMs, reservedUntilMs: period.coversUntilMs, nextAtMs: nowMs };
  const change: Change = {
    set: { admission: 'ACCEPTED', ...set },
    event: { type: 'ACCEPTED', status: 'SUCCEEDED', source: 'caller' },
  };
  return (await store.commit(before, change, nowMs)) !== undefined;
}

/** Returns the id of the sandbox if a concurrent request has accepted it. Otherwise releases the hold and throws an error. */
async function afterAll({ database, gateway }: SandboxService, period: Period): Promise<string> {
  const [row] = await database('sandboxes').where({ id: period.sandboxId }).select('admission');
  if (row?.admission === 'ACCEPTED') return period.sandboxId;
  const { accountId, keyId, holdId: rid } = period;
  await gateway.ledger.release({ accountId, keyId, rid, record: '' });
  throw ledgerUnavailable();
}

const REFUSED_AS: Readonly<Partial<Record<ReserveOutcome['outcome'], ErrorCode>>> = {
  unknown_account: 'INVALID_API_KEY',
  unknown_key: 'INVALID_API_KEY',
  revoked: 'INVALID_API_KEY',
};

function refusalOf(outcome: ReserveOutcome, requiredE8: bigint): GatewayError {
  if (outcome.outcome === 'insufficient_balance' || outcome.outcome === 'limit_exceeded')
    return unpaid(outcome, requiredE8);
  if (outcome.outcome === 'too_many_limited_tags' || outcome.outcome === 'too_many_tags')
    return refusedTags(outcome.outcome);
  if (outcome.outcome === 'frozen') return accountFrozen();
  const code = REFUSED_AS[outcome.outcome];
  return code === undefined ? ledgerUnavailable() : fail(code);
}

export function unpaid(outcome: MoneyMissing, requiredE8: bigint): GatewayError {
  const say = (what: string) =>
    `${what} does not cover the next billing period of the sandbox and the time until it can be terminated.`;
  return missingMoney(outcome, requiredE8, {
    balance: say("The account's available balance"),
    limit: say("The key's own spending limit"),
  });
}

/** Returns a sandbox as it is first written: no client sees it yet. */
export function newSandbox(
  { accountId, keyId }: Payer,
  { idempotencyKey, requestHash, policy, metadata, selection, tags }: Creation,
  { offering, spec, provisioningLimitMs }: OfferedInstance,
  nowMs: number,
): Sandbox {
  return {
    id: newId(),
    accountId,
    keyId,
    idempotencyKey,
    requestHash,
    admission: 'PENDING',
    quoteId: 'quoteId' in selection ? selection.quoteId : null,
    offeringId: offering.id,
    offering,
    supplier: offering.supplier,
    place: null,
    spec,
    provisioningLimitMs,
    policy,
    metadata,
    tags: tags ?? null,
    observedState: 'PROVISIONING',
    desiredState: 'RUNNING',
    lastConfirmedState: null,
    finalState: null,
    failure: null,
    stateVersion: 0,
    revision: 0,
    eventSequence: 0,
    segmentSequence: 0,
    supplierRef: null,
    incarnation: null,
    createSentAtMs: null,
    actionSentAtMs: null,
    confirmedAtMs: null,
    silentTries: 0,
    goneSinceMs: null,
    stoppedAtMs: null,
    attempts: 0,
    lastUsedAtMs: nowMs,
    totalCostE8: 0n,
    reservedUntilMs: null,
    createdAtMs: nowMs,
    acceptedAtMs: null,
    endedAtMs: null,
    terminatedAtMs: null,
    nextAtMs: nowMs,
    leaseEpoch: 0,
  };
}

/** Returns the first billing period, which the initial hold pays. */
export function firstPeriod({ id, accountId, keyId, offering, createdAtMs }: Sandbox, holdAheadMs: number): Period {
  return {
    id: newId(),
    sandboxId: id,
    accountId,
    keyId,
    sequence: 1,
    holdId: newId(),
    status: 'OPEN',
    reservedE8: parseUsd(offering.billing.initialReservationUsd),
    dueE8: null,
    amountE8: null,
    shortfallE8: 0n,
    startedAtMs: createdAtMs,
    coversUntilMs: createdAtMs + holdAheadMs,
    endedAtMs: null,
    settledAtMs: null,
  };
}
