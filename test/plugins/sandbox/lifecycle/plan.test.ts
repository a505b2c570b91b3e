import { strict as assert } from 'node:assert';
import { newId } from '../../../../core/base/ids';
import type { Aggregate } from '../../../../plugins/sandbox/lifecycle/aggregate';
import { type Action, nextVisit, type Observation, plan, type Seen } from '../../../../plugins/sandbox/lifecycle/plan';
import type { Period, Sandbox, Segment } from '../../../../plugins/sandbox/lifecycle/sandbox';
import { accepted, DEFAULT_TIMINGS } from '../simulation/simulate';

const NOW_MS = Date.UTC(2026, 10, 21, 8);
const REFERENCE = { id: 'i1', name: 'tg-1' };
const MINUTE_MS = 60_000;

const provisioning = accepted(
  { seed: 1, trouble: 0, usd: 0n, endAfterMs: 0, hourlyUsd: { RUNNING: 3.6 } },
  { accountId: newId(), keyId: newId() },
  NOW_MS,
);

function running(set: Partial<Sandbox> = {}, period: Partial<Period> = {}): Aggregate {
  const segment: Segment = {
    id: newId(),
    sandboxId: provisioning.sandbox.id,
    sequence: 1,
    state: 'RUNNING',
    hourlyE8: 360_000_000n,
    startsAtMs: NOW_MS,
    endsAtMs: null,
  };
  return {
    ...provisioning,
    operation: undefined,
    segment,
    period: { ...(provisioning.period as Period), ...period },
    sandbox: {
      ...provisioning.sandbox,
      observedState: 'RUNNING',
      lastConfirmedState: 'RUNNING',
      desiredState: null,
      supplierRef: REFERENCE,
      createSentAtMs: NOW_MS,
      confirmedAtMs: NOW_MS,
      ...set,
    },
  };
}

function instance(state: 'starting' | 'running' | 'suspended' | 'ended', asked = false, incarnation = ''): Seen {
  const inspection = {
    kind: 'found',
    reference: REFERENCE,
    state,
    tags: {},
    createdAt: new Date(NOW_MS),
    incarnation,
    endedAt: undefined,
  } as const;
  return { observation: { seen: 'instance', inspection, asked } };
}

const gone = (asked: boolean): Seen => ({ observation: { seen: 'instance', inspection: { kind: 'gone' }, asked } });
const silent: Seen = { observation: { seen: 'silence', verb: 'inspect', message: 'no answer' } };
const refusal = (verb: 'create' | 'suspend', isTemporary: boolean): Seen => ({
  observation: { seen: 'refusal', verb, message: 'no', isTemporary, isRejected: true } satisfies Observation,
});

const suspendedAt = { observedState: 'SUSPENDED', lastConfirmedState: 'SUSPENDED' } as const;
const ending = { desiredState: 'TERMINATED' } as const;

const WITHOUT_MEMORY = {
  ...provisioning.sandbox.offering,
  lifecycle: { ...provisioning.sandbox.offering.lifecycle, suspension: { supported: true, preserves: 'filesystem' } },
} as const;

/** The next action, and the members of the sandbox that it changes. */
const CASES: readonly [string, Aggregate, Seen, number, Action['kind'] | 'nothing', Partial<Sandbox>?][] = [
  ['creates the instance of a new sandbox', provisioning, {}, 0, 'create'],
  [
    'ends a sandbox without an instance and without the supplier',
    withSet(provisioning, ending),
    {},
    0,
    'record',
    { finalState: 'TERMINATED' },
  ],
  [
    'repeats a create without an answer, even to end the sandbox',
    withSet(provisioning, { ...ending, createSentAtMs: NOW_MS }),
    {},
    1_000,
    'create',
  ],
  [
    'retries a create that the supplier refuses temporarily',
    withSet(provisioning, { createSentAtMs: NOW_MS }),
    refusal('create', true),
    0,
    'record',
    { attempts: 1 },
  ],
  ['gives up an instance that does not run in time', provisioning, {}, 121_000, 'record', { finalState: 'FAILED' }],
  ['does nothing for a running instance within a minute', running(), {}, 59_000, 'nothing'],
  ['inspects a running instance every minute', running(), {}, 60_000, 'inspect'],
  ['suspends an instance on request', running({ desiredState: 'SUSPENDED' }), {}, 0, 'suspend'],
  ['resumes an instance on request', withSet(running(), { ...suspendedAt, desiredState: 'RUNNING' }), {}, 0, 'resume'],
  [
    'keeps an instance running that the supplier will not suspend',
    running({ desiredState: 'SUSPENDED' }),
    refusal('suspend', false),
    0,
    'record',
    { desiredState: null },
  ],
  ['terminates an instance on request', running(ending), {}, 1_000, 'terminate'],
  ['inspects an instance before its end if the last inspection is old', running(ending), {}, 30_000, 'inspect'],
  [
    'ends a sandbox now if its instance is gone on request',
    running(ending),
    gone(true),
    5_000,
    'record',
    { finalState: 'TERMINATED', endedAtMs: NOW_MS + 5_000 },
  ],
  [
    'ends a sandbox at the last confirmation if its termination had no answer',
    running({ ...ending, actionSentAtMs: NOW_MS + 2_000 }),
    gone(false),
    5_000,
    'record',
    { endedAtMs: NOW_MS },
  ],
  [
    'inspects an instance again that has disappeared',
    running(),
    gone(false),
    60_000,
    'record',
    { goneSinceMs: NOW_MS + 60_000, nextAtMs: NOW_MS + 90_000 },
  ],
  [
    'does not record UNKNOWN after three unanswered inspections within 90 s',
    running({ silentTries: 2 }),
    silent,
    80_000,
    'record',
    { silentTries: 3 },
  ],
  [
    'records UNKNOWN after three unanswered inspections over 90 s',
    running({ silentTries: 2 }),
    silent,
    91_000,
    'record',
    { observedState: 'UNKNOWN' },
  ],
  [
    'renews the hold three minutes before its end',
    running({ confirmedAtMs: NOW_MS + 7 * MINUTE_MS }),
    {},
    7 * MINUTE_MS,
    'renew',
  ],
  [
    'still suspends on request while a hold is refused',
    running({ confirmedAtMs: NOW_MS + 7 * MINUTE_MS, desiredState: 'SUSPENDED' }),
    { refused: true },
    7 * MINUTE_MS,
    'suspend',
  ],
  [
    'settles nothing while the state is UNKNOWN',
    running({ observedState: 'UNKNOWN' }, { coversUntilMs: NOW_MS + 60 * MINUTE_MS }),
    {},
    58 * MINUTE_MS,
    'inspect',
  ],
  [
    'terminates an instance even if the ledger is unavailable',
    running({ ...ending, confirmedAtMs: NOW_MS + 9 * MINUTE_MS }),
    { moneyWaits: 'ledger' },
    9 * MINUTE_MS,
    'terminate',
  ],
  [
    'ends a sandbox whose create is refused temporarily',
    withSet(provisioning, { ...ending, createSentAtMs: NOW_MS }),
    refusal('create', true),
    1_000,
    'record',
    { finalState: 'TERMINATED', endedAtMs: NOW_MS + 1_000 },
  ],
  [
    'ends a sandbox at its lifetime even if it cannot be suspended',
    running({ desiredState: 'SUSPENDED', policy: { ...provisioning.sandbox.policy, maxLifetimeSeconds: 60 } }),
    {},
    61_000,
    'record',
    { desiredState: 'TERMINATED' },
  ],
  [
    'records a loss at the last confirmation if the instance was restarted',
    running({ incarnation: 'one' }),
    instance('running', false, 'two'),
    60_000,
    'record',
    { finalState: 'FAILED', stoppedAtMs: NOW_MS },
  ],
  [
    'records a loss at the last confirmation if the instance is being restarted',
    running({ incarnation: 'one' }),
    instance('starting'),
    60_000,
    'record',
    { finalState: 'FAILED', stoppedAtMs: NOW_MS },
  ],
  [
    'treats an instance with another id as another instance',
    running({ incarnation: 'one', supplierRef: { id: 'i0', name: REFERENCE.name } }),
    instance('running', false, 'one'),
    60_000,
    'record',
    { finalState: 'FAILED', supplierRef: { id: 'i0', name: REFERENCE.name } },
  ],
  [
    'charges nothing after the last confirmation if the instance was restarted during its end',
    running({ ...ending, incarnation: 'one' }),
    instance('running', false, 'two'),
    60_000,
    'record',
    { stoppedAtMs: NOW_MS, confirmedAtMs: NOW_MS },
  ],
  [
    'accepts a restart as a resume if the supplier keeps no memory',
    {
      ...withSet(running(), { ...suspendedAt, desiredState: 'RUNNING', incarnation: 'one', offering: WITHOUT_MEMORY }),
      segment: undefined,
    },
    instance('running', true, 'two'),
    1_000,
    'record',
    { observedState: 'RUNNING', incarnation: 'two' },
  ],
  ['does not suspend a sandbox in use as idle', { ...idle(), isBusy: true }, {}, 31_000, 'nothing'],
  ['suspends an idle sandbox', idle(), {}, 31_000, 'record', { desiredState: 'SUSPENDED' }],
  ['does nothing for a sandbox that has ended', running({ observedState: 'TERMINATED' }), {}, 0, 'nothing'],
];

function idle(): Aggregate {
  return running({ policy: { ...provisioning.sandbox.policy, idleTimeoutSeconds: 30 } });
}

function withSet(aggregate: Aggregate, set: Partial<Sandbox>): Aggregate {
  return { ...aggregate, sandbox: { ...aggregate.sandbox, ...set } };
}

describe("the plan of a sandbox's worker", () => {
  for (const [what, aggregate, seen, afterMs, kind, set = {}] of CASES) {
    it(what, () => {
      const [action] = plan(aggregate, seen, NOW_MS + afterMs, DEFAULT_TIMINGS);
      assert.equal(action?.kind ?? 'nothing', kind);
      if (action?.kind !== 'record') return;
      for (const [field, value] of Object.entries(set)) {
        assert.deepEqual(action.change.set[field as keyof Sandbox], value, field);
      }
    });
  }

  it('schedules the next visit for the earliest due action', () => {
    assert.equal(nextVisit(running(), NOW_MS + 1_000, DEFAULT_TIMINGS), NOW_MS + 60_000);
    assert.equal(nextVisit(idle(), NOW_MS + 1_000, DEFAULT_TIMINGS), NOW_MS + 30_000);
    // A refused hold is requested again.
    const unpaid = running({ confirmedAtMs: NOW_MS + 7 * MINUTE_MS });
    assert.equal(nextVisit(unpaid, NOW_MS + 7 * MINUTE_MS, DEFAULT_TIMINGS), NOW_MS + 7 * MINUTE_MS + 10_000);
    const moving = running({ desiredState: 'SUSPENDED' });
    assert.equal(nextVisit(moving, NOW_MS + 1_000, DEFAULT_TIMINGS), NOW_MS + 2_000);
  });
});
