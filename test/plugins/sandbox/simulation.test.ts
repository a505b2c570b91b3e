import { strict as assert } from 'node:assert';
import { isFinal } from '../../../plugins/sandbox/lifecycle/states';
import { type Outcome, randomOf, type Simulation, simulate } from './simulation/simulate';

const SEEDS = Number(process.env['SANDBOX_SEEDS'] ?? 250);
const USD = 100_000_000n;
const MINUTE_MS = 60_000;

function check({ seed, usd }: Simulation, outcome: Outcome): void {
  const { store, supplier, chargedE8, heldE8 } = outcome;
  const { sandbox } = store.aggregate;
  const story = `seed ${seed}: ${store.events.map(({ type }) => type).join(' ')} ${JSON.stringify(sandbox.failure)}`;
  const sum = (amounts: Iterable<bigint | null>) =>
    [...amounts].reduce<bigint>((total, each) => total + (each ?? 0n), 0n);
  const periods = [...store.periods.values()];

  assert.ok(isFinal(sandbox.observedState), story);
  assert.equal(supplier.instances.size, 0, story);
  assert.ok(
    [...store.segments.values()].every(({ endsAtMs }) => endsAtMs !== null),
    `${story}: an open segment`,
  );
  assert.ok(
    periods.every(({ status }) => status === 'SETTLED'),
    `${story}: an open period`,
  );
  assert.ok(
    [...store.operations.values()].every(({ endedAtMs }) => endedAtMs !== null),
    `${story}: an open operation`,
  );

  assert.equal(heldE8, 0n, `${story}: held`);
  assert.equal(
    chargedE8,
    sandbox.totalCostE8,
    `${story}: the ledger charged ${chargedE8}, the books ${sandbox.totalCostE8}`,
  );
  assert.ok(chargedE8 <= usd, `${story}: below zero`);
  assert.equal(sum(periods.map(({ amountE8 }) => amountE8)), sandbox.totalCostE8, `${story}: periods`);
  const due = sum(periods.map(({ dueE8 }) => dueE8));
  assert.equal(sum([...store.lines.values()].map(({ amountE8 }) => amountE8)), due, `${story}: lines`);
  assert.equal(sum(periods.map(({ amountE8, shortfallE8 }) => (amountE8 ?? 0n) + shortfallE8)), due, `${story}: due`);

  assert.ok(
    billedMs(outcome) <= livedMs(outcome) + toleranceMs(outcome),
    `${story}: billed ${billedMs(outcome)} ms of ${livedMs(outcome)}`,
  );
}

function billedMs({ store }: Outcome): number {
  return [...store.lines.values()].reduce((total, { startsAtMs, endsAtMs }) => total + endsAtMs - startsAtMs, 0);
}

/** Returns the time that has a price. */
function livedMs({ supplier, store }: Outcome): number {
  const { PROVISIONING } = store.aggregate.sandbox.offering.billing.estimatedHourlyUsdByState;
  const priced = supplier.lived.filter(({ state }) => state !== 'starting' || PROVISIONING !== '0.00000000');
  return priced.reduce((total, { fromMs, untilMs }) => total + untilMs - fromMs, 0);
}

/** Returns the tolerance: billing starts and ends at confirmations, so the latency of a call may be billed, and no more. */
function toleranceMs({ slackMs }: Outcome): number {
  return slackMs + 1_000;
}

describe('a simulated sandbox with every kind of fault', function () {
  this.timeout(120_000 + SEEDS * 50);

  it(`ends without an instance and with consistent records (${SEEDS} simulations)`, async () => {
    let crashes = 0;
    let orphans = 0;
    for (let seed = 1; seed <= SEEDS; seed += 1) {
      const random = randomOf(seed * 7_919);
      const simulation: Simulation = {
        seed,
        trouble: random(),
        usd: BigInt(Math.floor(70_000_000 + random() * 1_500_000_000)),
        endAfterMs: Math.floor(random() * 180) * MINUTE_MS + Math.floor(random() * 5_000),
        policy: {
          onFundsExhausted: random() < 0.5 ? 'suspend' : 'terminate',
          idleTimeoutSeconds: random() < 0.3 ? 900 : null,
          maxLifetimeSeconds: random() < 0.3 ? 5_400 : null,
          maxTotalCostUsd: random() < 0.3 ? '1.50000000' : null,
        },
        ...(random() < 0.3 ? { hourlyUsd: { RUNNING: 3.3333333, PROVISIONING: 1.1 } } : {}),
      };
      const outcome = await simulate(simulation).catch((error: unknown) => {
        throw new Error(`seed ${seed}: ${String(error)}`, { cause: error });
      });
      check(simulation, outcome);
      crashes += outcome.crashes;
      orphans += outcome.orphans;
    }
    assert.ok(crashes > SEEDS / 4, `only ${crashes} crashes: the world was too kind`);
    assert.ok(orphans < SEEDS / 10, `${orphans} orphans were left for the sweep`);
  });
});

describe('a simulated sandbox without faults', () => {
  const calm = { seed: 1, trouble: 0, usd: 100n * USD };

  it('is billed for its running time, and no more', async () => {
    const simulation = { ...calm, endAfterMs: 150 * MINUTE_MS };
    const outcome = await simulate(simulation);
    check(simulation, outcome);
    assert.ok(Math.abs(billedMs(outcome) - livedMs(outcome)) < 1_500, `${billedMs(outcome)} of ${livedMs(outcome)}`);
    const periods = [...outcome.store.periods.values()];
    assert.ok(periods.length >= 3);
    for (const { startedAtMs, endedAtMs } of periods) assert.ok((endedAtMs ?? 0) - startedAtMs <= 60 * MINUTE_MS);
  });

  it('with money for ten minutes ends before the money is used up, and owes nothing', async () => {
    const simulation = { ...calm, usd: 61_200_000n, endAfterMs: 600 * MINUTE_MS };
    const outcome = await simulate(simulation);
    check(simulation, outcome);
    assert.equal(outcome.store.aggregate.sandbox.observedState, 'TERMINATED');
    assert.ok(outcome.store.events.some(({ message }) => message === 'FUNDS_EXHAUSTED'));
    for (const { shortfallE8 } of outcome.store.periods.values()) assert.equal(shortfallE8, 0n);
    assert.ok(livedMs(outcome) <= 10 * MINUTE_MS && livedMs(outcome) > 8 * MINUTE_MS);
  });

  it('is suspended before it is terminated for lack of money if its policy `onFundsExhausted` is `suspend`', async () => {
    const simulation: Simulation = {
      ...calm,
      usd: 61_200_000n,
      endAfterMs: 600 * MINUTE_MS,
      policy: { onFundsExhausted: 'suspend' },
    };
    const outcome = await simulate(simulation);
    check(simulation, outcome);
    assert.deepEqual(
      outcome.store.events.map(({ type }) => type).filter((type) => !type.endsWith('_REQUESTED')),
      ['RUNNING', 'SUSPENDED', 'TERMINATED'],
    );
    for (const { shortfallE8 } of outcome.store.periods.values()) assert.equal(shortfallE8, 0n);
  });

  for (const [policy, cause] of [
    [{ maxLifetimeSeconds: 1_800 }, 'MAX_LIFETIME'],
    [{ maxTotalCostUsd: '1.00000000' }, 'MAX_TOTAL_COST'],
    [{ idleTimeoutSeconds: 600 }, 'IDLE_TIMEOUT'],
  ] as const) {
    it(`applies the limit ${Object.keys(policy)[0]} of its policy`, async () => {
      const simulation = { ...calm, endAfterMs: 300 * MINUTE_MS, policy };
      const outcome = await simulate(simulation);
      check(simulation, outcome);
      assert.ok(
        outcome.store.events.some(({ message }) => message === cause),
        cause,
      );
      assert.ok(outcome.chargedE8 <= USD * 20n);
      if (cause === 'MAX_TOTAL_COST') assert.ok(outcome.chargedE8 <= USD);
    });
  }

  it("is UNKNOWN while its supplier is silent for five minutes, then recovers, and is billed by the supplier's report", async () => {
    const simulation: Simulation = {
      ...calm,
      endAfterMs: 40 * MINUTE_MS,
      silentMs: [10 * MINUTE_MS, 15 * MINUTE_MS],
    };
    const outcome = await simulate(simulation);
    check(simulation, outcome);
    assert.deepEqual(states(outcome), ['RUNNING', 'UNKNOWN', 'RUNNING', 'TERMINATED']);
    // The supplier reports afterwards that the instance kept running.
    assert.ok(Math.abs(billedMs(outcome) - livedMs(outcome)) < 1_500);
  });

  it('is billed until the last confirmation if the instance is gone when the silent supplier answers again', async () => {
    const simulation: Simulation = {
      ...calm,
      endAfterMs: 60 * MINUTE_MS,
      silentMs: [10 * MINUTE_MS, 15 * MINUTE_MS],
      vanishesAfterMs: 12 * MINUTE_MS,
    };
    const outcome = await simulate(simulation);
    check(simulation, outcome);
    assert.deepEqual(states(outcome), ['RUNNING', 'UNKNOWN', 'FAILED']);
    assert.equal(outcome.store.aggregate.sandbox.failure?.code, 'SUPPLIER_LOST');
    assert.ok(billedMs(outcome) <= 10 * MINUTE_MS && billedMs(outcome) > 8 * MINUTE_MS);
  });

  it('is billed until the time that the supplier reports if the instance stops by itself', async () => {
    const simulation: Simulation = { ...calm, endAfterMs: 60 * MINUTE_MS, stopsAfterMs: 20 * MINUTE_MS };
    const outcome = await simulate(simulation);
    check(simulation, outcome);
    assert.equal(outcome.store.aggregate.sandbox.failure?.code, 'SUPPLIER_LOST');
    assert.ok(Math.abs(billedMs(outcome) - livedMs(outcome)) < 1_500);
  });

  it('costs the same if no worker ran for an hour', async () => {
    // Uses an amount that divides evenly, so that the number of periods causes no rounding.
    const even = { ...calm, hourlyUsd: { RUNNING: 3.6 }, endAfterMs: 130 * MINUTE_MS };
    const watched = await simulate(even);
    const simulation: Simulation = { ...even, workerlessMs: [20 * MINUTE_MS, 80 * MINUTE_MS] };
    const outcome = await simulate(simulation);
    check(simulation, outcome);
    const perMs = 100n;
    assert.equal(outcome.chargedE8, BigInt(billedMs(outcome)) * perMs);
    assert.equal(watched.chargedE8, BigInt(billedMs(watched)) * perMs);
    assert.ok(Math.abs(billedMs(outcome) - billedMs(watched)) < 1_500);
    for (const { startedAtMs, endedAtMs } of outcome.store.periods.values()) {
      assert.ok((endedAtMs ?? 0) - startedAtMs <= 60 * MINUTE_MS);
    }
  });
});

function states({ store }: Outcome): readonly string[] {
  return store.events.map(({ type }) => type).filter((type) => !type.includes('_'));
}
