import { strict as assert } from 'node:assert';
import { newId } from '../../../../core/ids';
import type { Aggregate } from '../../../../plugins/sandbox/life/aggregate';
import { type Action, nextVisit, type Observation, plan, type Seen } from '../../../../plugins/sandbox/life/plan';
import type { Period, Sandbox, Segment } from '../../../../plugins/sandbox/life/sandbox';
import { DEFAULT_TIMINGS } from '../../../../plugins/sandbox/life/timings';
import { accepted } from '../simulation/simulate';

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

/** What is done next, and of the sandbox what it changes. */
const CASES: readonly [string, Aggregate, Seen, number, Action['kind'] | 'nothing', Partial<Sandbox>?][] = [
  ['a new one is made', provisioning, {}, 0, 'create'],
  [
    'one that is ended before it was made needs no supplier',
    withSet(provisioning, ending),
    {},
    0,
    'record',
    { finalState: 'TERMINATED' },
  ],
  [
    'a create without an answer is sent again, also to end it',
    withSet(provisioning, { ...ending, createSentAtMs: NOW_MS }),
    {},
    1_000,
    'create',
  ],
  [
    'what the supplier refuses has failed',
    withSet(provisioning, { createSentAtMs: NOW_MS }),
    refusal('create', false),
    0,
    'record',
    { finalState: 'FAILED' },
  ],
  [
    'what it refuses for now is tried again',
    withSet(provisioning, { createSentAtMs: NOW_MS }),
    refusal('create', true),
    0,
    'record',
    { attempts: 1 },
  ],
  ['what does not run in time is given up', provisioning, {}, 121_000, 'record', { finalState: 'FAILED' }],
  [
    'what is confirmed runs',
    withSet(provisioning, { supplierRef: REFERENCE }),
    instance('running'),
    900,
    'record',
    { observedState: 'RUNNING', desiredState: null },
  ],
  ['what runs is left alone', running(), {}, 59_000, 'nothing'],
  ['what runs is looked at every minute', running(), {}, 60_000, 'inspect'],
  ['what was asked to be suspended is', running({ desiredState: 'SUSPENDED' }), {}, 0, 'suspend'],
  ['what was asked to be resumed is', withSet(running(), { ...suspendedAt, desiredState: 'RUNNING' }), {}, 0, 'resume'],
  [
    'what the supplier will not suspend runs on',
    running({ desiredState: 'SUSPENDED' }),
    refusal('suspend', false),
    0,
    'record',
    { desiredState: null },
  ],
  ['what was asked to end is ended', running(ending), {}, 1_000, 'terminate'],
  ['what was not seen for long is looked at once more first', running(ending), {}, 30_000, 'inspect'],
  [
    'what is gone as asked ends now',
    running(ending),
    gone(true),
    5_000,
    'record',
    { finalState: 'TERMINATED', endedAtMs: NOW_MS + 5_000 },
  ],
  [
    'what is gone after an unanswered termination ended at the last confirmation',
    running({ ...ending, actionSentAtMs: NOW_MS + 2_000 }),
    gone(false),
    5_000,
    'record',
    { endedAtMs: NOW_MS },
  ],
  [
    'what is gone unasked is looked at again',
    running(),
    gone(false),
    60_000,
    'record',
    { goneSinceMs: NOW_MS + 60_000, nextAtMs: NOW_MS + 90_000 },
  ],
  [
    'what is gone twice is lost, at the last confirmation',
    running({ goneSinceMs: NOW_MS + 60_000 }),
    gone(false),
    90_000,
    'record',
    { finalState: 'FAILED', endedAtMs: NOW_MS },
  ],
  [
    'what stopped by itself is lost',
    running(),
    instance('ended'),
    1_000,
    'record',
    { finalState: 'FAILED', stoppedAtMs: NOW_MS },
  ],
  ['two silences are not enough', running({ silentTries: 1 }), silent, 100_000, 'record', { silentTries: 2 }],
  ['three within 90 s are not either', running({ silentTries: 2 }), silent, 80_000, 'record', { silentTries: 3 }],
  [
    'three over 90 s make it unknown',
    running({ silentTries: 2 }),
    silent,
    91_000,
    'record',
    { observedState: 'UNKNOWN' },
  ],
  [
    'what is unknown is what the supplier says',
    running({ observedState: 'UNKNOWN' }),
    instance('suspended'),
    300_000,
    'record',
    { observedState: 'SUSPENDED' },
  ],
  [
    'three minutes before its end the hold is renewed',
    running({ confirmedAtMs: NOW_MS + 7 * MINUTE_MS }),
    {},
    7 * MINUTE_MS,
    'renew',
  ],
  [
    'while a hold is refused, what was asked for is done',
    running({ confirmedAtMs: NOW_MS + 7 * MINUTE_MS, desiredState: 'SUSPENDED' }),
    { refused: true },
    7 * MINUTE_MS,
    'suspend',
  ],
  [
    'a minute before the money ends the sandbox does',
    running({ confirmedAtMs: NOW_MS + 9 * MINUTE_MS }),
    { refused: true },
    9 * MINUTE_MS,
    'record',
    { desiredState: 'TERMINATED' },
  ],
  [
    'or it is suspended',
    running({
      confirmedAtMs: NOW_MS + 9 * MINUTE_MS,
      policy: { ...provisioning.sandbox.policy, onFundsExhausted: 'suspend' },
    }),
    { refused: true },
    9 * MINUTE_MS,
    'record',
    { desiredState: 'SUSPENDED' },
  ],
  [
    'nothing is settled while it is unknown',
    running({ observedState: 'UNKNOWN' }, { coversUntilMs: NOW_MS + 60 * MINUTE_MS }),
    {},
    58 * MINUTE_MS,
    'inspect',
  ],
  [
    'before the hour is full its period is settled',
    running({ confirmedAtMs: NOW_MS + 57 * MINUTE_MS }, { coversUntilMs: NOW_MS + 60 * MINUTE_MS }),
    {},
    57 * MINUTE_MS,
    'record',
    { reservedUntilMs: NOW_MS + 67 * MINUTE_MS },
  ],
  [
    'money waits for the ledger, the supplier does not',
    running({ ...ending, confirmedAtMs: NOW_MS + 9 * MINUTE_MS }),
    { moneyWaits: 'ledger' },
    9 * MINUTE_MS,
    'terminate',
  ],
  [
    'what is being ended and cannot be made, for now, is not there',
    withSet(provisioning, { ...ending, createSentAtMs: NOW_MS }),
    refusal('create', true),
    1_000,
    'record',
    { finalState: 'TERMINATED', endedAtMs: NOW_MS + 1_000 },
  ],
  [
    'its lifetime ends what cannot be suspended, too',
    running({ desiredState: 'SUSPENDED', policy: { ...provisioning.sandbox.policy, maxLifetimeSeconds: 60 } }),
    {},
    61_000,
    'record',
    { desiredState: 'TERMINATED' },
  ],
  [
    'what was started anew is lost, at the last confirmation',
    running({ incarnation: 'one' }),
    instance('running', false, 'two'),
    60_000,
    'record',
    { finalState: 'FAILED', stoppedAtMs: NOW_MS },
  ],
  [
    'so is what is being started anew',
    running({ incarnation: 'one' }),
    instance('starting'),
    60_000,
    'record',
    { finalState: 'FAILED', stoppedAtMs: NOW_MS },
  ],
  [
    'what has another id is another instance',
    running({ incarnation: 'one', supplierRef: { id: 'i0', name: REFERENCE.name } }),
    instance('running', false, 'one'),
    60_000,
    'record',
    { finalState: 'FAILED', supplierRef: { id: 'i0', name: REFERENCE.name } },
  ],
  [
    'what was started anew while it is ended costs nothing from the last confirmation on',
    running({ ...ending, incarnation: 'one' }),
    instance('running', false, 'two'),
    60_000,
    'record',
    { stoppedAtMs: NOW_MS, confirmedAtMs: NOW_MS },
  ],
  [
    'what keeps no memory is started anew to be resumed',
    {
      ...withSet(running(), { ...suspendedAt, desiredState: 'RUNNING', incarnation: 'one', offering: WITHOUT_MEMORY }),
      segment: undefined,
    },
    instance('running', true, 'two'),
    1_000,
    'record',
    { observedState: 'RUNNING', incarnation: 'two' },
  ],
  ['what is used is not idle', { ...idle(), isBusy: true }, {}, 31_000, 'nothing'],
  ['what is not used is', idle(), {}, 31_000, 'record', { desiredState: 'SUSPENDED' }],
  ['what has ended is left alone', running({ observedState: 'TERMINATED' }), {}, 0, 'nothing'],
];

function idle(): Aggregate {
  return running({ policy: { ...provisioning.sandbox.policy, idleTimeoutSeconds: 30 } });
}

function withSet(aggregate: Aggregate, set: Partial<Sandbox>): Aggregate {
  return { ...aggregate, sandbox: { ...aggregate.sandbox, ...set } };
}

describe('the plan of a sandbox', () => {
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

  it('comes again when the next thing is due', () => {
    assert.equal(nextVisit(running(), NOW_MS + 1_000, DEFAULT_TIMINGS), NOW_MS + 60_000);
    assert.equal(nextVisit(idle(), NOW_MS + 1_000, DEFAULT_TIMINGS), NOW_MS + 30_000);
    // A hold that was refused is asked for again.
    const unpaid = running({ confirmedAtMs: NOW_MS + 7 * MINUTE_MS });
    assert.equal(nextVisit(unpaid, NOW_MS + 7 * MINUTE_MS, DEFAULT_TIMINGS), NOW_MS + 7 * MINUTE_MS + 10_000);
    const moving = running({ desiredState: 'SUSPENDED' });
    assert.equal(nextVisit(moving, NOW_MS + 1_000, DEFAULT_TIMINGS), NOW_MS + 2_000);
  });
});
