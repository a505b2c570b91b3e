import { strict as assert } from 'node:assert';
import { mapValues } from '../../../../core/base/collections';
import { newId } from '../../../../core/base/ids';
import { CLOSED_MS } from '../../../../core/ledger/ledger';
import { MemoryLedger } from '../../../../core/ledger/memory-ledger';
import { shardOf } from '../../../../core/ledger/shard';
import { firstPeriod, newSandbox } from '../../../../plugins/sandbox/admission/admission';
import type { Aggregate } from '../../../../plugins/sandbox/lifecycle/aggregate';
import { newOperation, request } from '../../../../plugins/sandbox/lifecycle/lifecycle';
import type { Sandbox, SandboxPolicy } from '../../../../plugins/sandbox/lifecycle/sandbox';
import { readTimings, TIMINGS } from '../../../../plugins/sandbox/lifecycle/settings';
import { isFinal } from '../../../../plugins/sandbox/lifecycle/states';
import { type OfferedInstance, readOffering } from '../../../../plugins/sandbox/offerings/offering';
import { visit } from '../../../../plugins/sandbox/worker/reconciler';
import type { StepContext } from '../../../../plugins/sandbox/worker/step-context';
import { MemoryStore } from './memory-store';
import { type Fate, ScriptedSupplier } from './scripted-supplier';

/** The timings of a gateway without settings for them. */
const defaults = mapValues(TIMINGS, ({ default: text }) => text) as Record<keyof typeof TIMINGS, string>;
export const DEFAULT_TIMINGS = readTimings(defaults);

/** The crash of a process: nothing after it runs. */
class Crash extends Error {}

export interface Simulation {
  readonly seed: number;
  /** The probability of faults, from 0 (none) to 1. */
  readonly trouble: number;
  readonly usd: bigint;
  readonly policy?: Partial<SandboxPolicy>;
  /** When the caller ends the sandbox, if ever. */
  readonly endAfterMs: number;
  /** The period after the start in which the supplier does not answer. */
  readonly silentMs?: readonly [number, number];
  /** The period in which no worker runs. */
  readonly workerlessMs?: readonly [number, number];
  /** When the instance stops by itself. */
  readonly stopsAfterMs?: number;
  /** When the instance disappears without a trace. */
  readonly vanishesAfterMs?: number;
  readonly hourlyUsd?: { RUNNING: number; SUSPENDED?: number; PROVISIONING?: number };
}

export interface Outcome {
  readonly store: MemoryStore;
  readonly supplier: ScriptedSupplier;
  readonly orphans: number;
  readonly chargedE8: bigint;
  readonly heldE8: bigint;
  readonly visits: number;
  readonly crashes: number;
  /** The longest silence plus all latencies. */
  readonly slackMs: number;
}

const START_MS = Date.UTC(2026, 10, 21);
const LAST_MS = START_MS + 12 * 3_600_000;

/** Makes random numbers by mulberry32, which is small, fast and the same everywhere. */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Places in which every node reaches every instance. */
export const EVERYWHERE: StepContext['places'] = { homeOf: () => null, reachOf: async () => 'here' };

/** Simulates one sandbox from its acceptance to its end, in virtual time. */
export async function simulate(simulation: Simulation): Promise<Outcome> {
  const random = randomOf(simulation.seed);
  const chance = (probability: number) => random() < probability * simulation.trouble;
  let nowMs = START_MS;
  let slackMs = 0;
  let crashes = 0;
  let visits = 0;
  let depth = 0;
  let silentUntilMs = 0;

  const ledger = new MemoryLedger({ now: () => nowMs });
  await ledger.open();
  const payer = { accountId: newId(), keyId: newId() };
  await ledger.setAccount(payer.accountId, 'active');
  await ledger.setKey({
    ...payer,
    hash: 'h',
    status: 'active',
    limitE8: undefined,
    settings: { rev: 0, name: 'key', allowedModels: undefined },
  } as Parameters<MemoryLedger['setKey']>[0]);
  await ledger.credit({ accountId: payer.accountId, rid: newId(), amountE8: simulation.usd });

  const aggregate = accepted(simulation, payer, START_MS);
  const { period } = aggregate;
  assert.ok(period !== undefined);
  const hold = {
    ...payer,
    rid: period.holdId,
    keyRev: 0,
    amountE8: period.reservedE8,
    lifetimeMs: undefined,
    record: '',
  };
  const reserved = await ledger.reserve(hold);
  assert.equal(reserved.outcome, 'reserved');
  const store = new MemoryStore(aggregate);

  const supplier = new ScriptedSupplier({
    now: () => nowMs,
    readyAfterMs: () => Math.floor(random() * (chance(0.05) ? 200_000 : 5_000)),
    fate: (): Fate => {
      const latencyMs = Math.floor(random() * (chance(0.05) ? 30_000 : 400));
      const [silentFromMs, silentToMs] = simulation.silentMs ?? [0, 0];
      if (nowMs - START_MS >= silentFromMs && nowMs - START_MS < silentToMs) return { latencyMs: 0, fault: 'not-sent' };
      if (nowMs < silentUntilMs) return { latencyMs: 0, fault: 'not-sent' };
      if (chance(0.004)) silentUntilMs = nowMs + Math.floor(random() * 600_000);
      const drawn = random() / (simulation.trouble || 1e-9);
      if (drawn < 0.04) return { latencyMs, fault: 'lost-answer' };
      if (drawn < 0.06) return { latencyMs, fault: 'late-effect' };
      if (drawn < 0.1) return { latencyMs, fault: 'not-sent' };
      if (drawn < 0.105) return { latencyMs, fault: 'rejected' };
      return { latencyMs, fault: 'none' };
    },
    pass: async (takenMs) => {
      const ms = Math.ceil(takenMs);
      nowMs += ms;
      slackMs += ms;
      if (chance(0.05)) await callerAsks();
      // The step is so slow that the claim expires and another worker continues.
      if (depth < 2 && chance(0.02)) {
        nowMs += DEFAULT_TIMINGS.leaseMs + 1;
        slackMs += DEFAULT_TIMINGS.leaseMs + 1;
        await step();
      }
    },
  });

  /** Lets the process crash after any answer from outside. */
  const fragile = <T extends object>(target: T): T =>
    new Proxy(target, {
      get: (object, name) => {
        const value = Reflect.get(object, name) as unknown;
        if (typeof value !== 'function') return value;
        return async (...args: unknown[]) => {
          if (chance(0.01)) throw new Crash();
          const answer: unknown = await Reflect.apply(value, object, args);
          if (chance(0.02)) throw new Crash();
          return answer;
        };
      },
    });

  const context = {
    ledger: fragile(ledger),
    timings: DEFAULT_TIMINGS,
    now: () => nowMs,
    driverOf: () => fragile(supplier.driver),
    places: EVERYWHERE,
    tagsOf: () => ({}),
    noteCall: () => {},
    areTooManyGone: async () => false,
  };

  /** Stops every worker for so long that the ledger forgets its reservations, and only its entries remain. */
  async function allAreDown(): Promise<void> {
    const shard = shardOf(payer.accountId);
    for (const [, entries] of await ledger.readOutbox([shard], 1_000)) {
      store.shipped.push(...entries);
      await ledger.trimOutbox(shard, entries);
    }
    nowMs += CLOSED_MS + 1;
    slackMs += CLOSED_MS + 1;
  }

  async function callerAsks(): Promise<void> {
    const { sandbox } = store.aggregate;
    if (isFinal(sandbox.observedState) || sandbox.desiredState !== null || sandbox.finalState !== null) return;
    const verb =
      sandbox.observedState === 'RUNNING' ? 'SUSPEND' : sandbox.observedState === 'SUSPENDED' ? 'RESUME' : undefined;
    if (verb === undefined) return;
    await store.commit(
      store.aggregate,
      request(store.aggregate, verb, { cause: 'caller', source: 'caller', nowMs }),
      nowMs,
    );
  }

  async function callerEnds(): Promise<void> {
    const { sandbox } = store.aggregate;
    if (isFinal(sandbox.observedState) || sandbox.desiredState === 'TERMINATED') return;
    await store.commit(
      store.aggregate,
      request(store.aggregate, 'TERMINATE', { cause: 'caller', source: 'caller', nowMs }),
      nowMs,
    );
  }

  async function step(): Promise<boolean> {
    supplier.settle();
    const [lease] = await store.claim(nowMs, DEFAULT_TIMINGS.leaseMs);
    if (lease === undefined) return false;
    visits += 1;
    depth += 1;
    try {
      await visit({ store: fragile(store), context }, lease);
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      crashes += 1;
      if (chance(0.1)) await allAreDown();
    } finally {
      depth -= 1;
    }
    return true;
  }

  while (!isFinal(store.aggregate.sandbox.observedState)) {
    assert.ok(visits < 5_000, `no end after ${visits} visits`);
    assert.ok(nowMs < LAST_MS, 'no end after twelve hours');
    if (nowMs - START_MS >= simulation.endAfterMs) await callerEnds();
    if (simulation.trouble > 0 && random() < 0.0005) supplier.stopByItself();
    const sinceMs = nowMs - START_MS;
    if (sinceMs >= (simulation.stopsAfterMs ?? Number.POSITIVE_INFINITY)) supplier.stopByItself();
    if (sinceMs >= (simulation.vanishesAfterMs ?? Number.POSITIVE_INFINITY)) supplier.removeAll();
    const [downFromMs, downToMs] = simulation.workerlessMs ?? [0, 0];
    if (sinceMs >= downFromMs && sinceMs < downToMs) {
      nowMs = START_MS + downToMs;
      continue;
    }
    if (await step()) continue;
    const { sandbox } = store.aggregate;
    const dueMs = Math.max(sandbox.nextAtMs, store.leaseUntilMs);
    const endMs = START_MS + simulation.endAfterMs;
    nowMs = nowMs < endMs && endMs < dueMs ? endMs : Math.max(nowMs + 1, dueMs);
    supplier.settle();
  }
  while (supplier.hasLateEffects) {
    nowMs += 60_000;
    supplier.settle();
  }
  const orphans = supplier.removeAll();
  const account = await ledger.readAccount(payer.accountId);
  assert.ok(account !== undefined);
  return {
    store,
    supplier,
    orphans,
    chargedE8: simulation.usd - account.postedE8,
    heldE8: account.heldE8,
    visits,
    crashes,
    slackMs,
  };
}

/** Returns a sandbox as the admission leaves it. */
export function accepted(
  simulation: Simulation,
  payer: { accountId: string; keyId: string },
  nowMs: number,
): Aggregate {
  const offered = offeringOf(simulation);
  const creation = {
    idempotencyKey: 'key',
    requestHash: '',
    selection: { offeringId: offered.offering.id },
    policy: {
      resumeOnAccess: false,
      idleTimeoutSeconds: null,
      maxLifetimeSeconds: null,
      maxTotalCostUsd: null,
      onFundsExhausted: 'terminate' as const,
      ...simulation.policy,
    },
    metadata: {},
  };
  const made = newSandbox(payer, creation, offered, nowMs);
  const period = firstPeriod(made, DEFAULT_TIMINGS.holdAheadMs);
  const sandbox: Sandbox = {
    ...made,
    admission: 'ACCEPTED',
    acceptedAtMs: nowMs,
    reservedUntilMs: period.coversUntilMs,
    stateVersion: 1,
    revision: 1,
    eventSequence: 1,
  };
  const operation = newOperation(sandbox.id, 'CREATE', { cause: 'caller', idempotencyKey: 'key', nowMs });
  return { sandbox, operation, segment: undefined, period, settling: [], lines: [], isBusy: false };
}

function offeringOf({ hourlyUsd }: Simulation): OfferedInstance {
  return readOffering(
    'simulated',
    {
      supplier: 'scripted',
      enabled: true,
      region: 'local',
      resources: { cpu: 1, memoryGiB: 1, volumeGiB: 0, gpu: [] },
      capabilities: ['exec'],
      suspension: 'memory',
      resumeOnAccess: true,
      maxContinuousRuntime: '24h',
      provisioningLimit: '120s',
      hourlyUsd: { PROVISIONING: 0, SUSPENDED: 0.1234567, ...(hourlyUsd ?? { RUNNING: 3.3333333 }) },
    },
    { uniqueName: true, ttl: 'none', suspend: 'memory', isolation: 'none', exec: true, files: true, ports: true },
    660,
  );
}
