import { strict as assert } from 'node:assert';
import { newId } from '../../../../core/ids';
import type { Reach } from '../../../../plugins/sandbox/books/places';
import { plan, type SupplierVerb } from '../../../../plugins/sandbox/life/plan';
import type { Sandbox } from '../../../../plugins/sandbox/life/sandbox';
import { DEFAULT_TIMINGS } from '../../../../plugins/sandbox/life/settings';
import type { SupplierDriver } from '../../../../plugins/sandbox/suppliers/supplier';
import type { World } from '../../../../plugins/sandbox/worker/apply';
import { askSupplier } from '../../../../plugins/sandbox/worker/ask-supplier';
import { accepted, EVERYWHERE } from '../simulation/simulate';

const NOW_MS = Date.UTC(2026, 10, 21);

describe('an instance that its supplier does not list', () => {
  const payer = { accountId: newId(), keyId: newId() };
  const { sandbox } = accepted({ seed: 1, trouble: 0, usd: 0n, endAfterMs: 0 }, payer, NOW_MS);
  const look = (set: Partial<Sandbox>, tooMany: boolean) => {
    const driver = { inspect: async () => ({ kind: 'gone' }) } as unknown as SupplierDriver;
    const world = {
      now: () => NOW_MS,
      driverOf: () => driver,
      places: EVERYWHERE,
      noteCall: async () => {},
      areTooManyGone: async () => tooMany,
    } as unknown as World;
    return askSupplier(world, { ...sandbox, supplierRef: { id: 'i1', name: 'tg-1' }, ...set }, 'inspect');
  };

  it('is gone, unless too many are missing at once: then the answer is ignored', async () => {
    assert.equal((await look({}, true)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS }, false)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS }, true)).seen, 'silence');
  });

  it('is accepted as gone if it is being ended, however many are', async () => {
    assert.equal((await look({ goneSinceMs: NOW_MS, desiredState: 'TERMINATED' }, true)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS, finalState: 'FAILED' }, true)).seen, 'instance');
  });
});

describe('an instance that only some nodes reach', () => {
  const payer = { accountId: newId(), keyId: newId() };
  const made = accepted({ seed: 1, trouble: 0, usd: 0n, endAfterMs: 0 }, payer, NOW_MS);
  const reference = { id: 'i1', name: 'tg-1' };
  const running = { supplierRef: reference, createSentAtMs: NOW_MS, confirmedAtMs: NOW_MS - 60_000 };
  const ask = async (reach: Reach, verb: SupplierVerb) => {
    const sent: string[] = [];
    const note = (name: string) => async () => sent.push(name);
    const found = { kind: 'found', reference, state: 'running', incarnation: '1', tags: {}, createdAt: new Date() };
    const driver = { inspect: async () => found, terminate: note('terminate'), create: note('create') };
    const world = {
      now: () => NOW_MS,
      driverOf: () => driver,
      places: { homeOf: () => 'here', reachOf: async () => reach },
      noteCall: note('a call is noted'),
    } as unknown as World;
    return { observation: await askSupplier(world, { ...made.sandbox, ...running }, verb), sent };
  };

  it('is unreachable while its node is away, and receives no requests', async () => {
    for (const verb of ['create', 'inspect', 'suspend', 'resume', 'terminate'] as const) {
      const { observation, sent } = await ask('silent', verb);
      assert.deepEqual([observation.seen, sent], ['silence', []], verb);
    }
  });

  it('is gone, and billed to its last confirmation, if its place is lost', async () => {
    const { observation, sent } = await ask('lost', 'terminate');
    assert.deepEqual(sent, []);
    const ending = { ...made, sandbox: { ...made.sandbox, ...running, desiredState: 'TERMINATED' as const } };
    const [action] = plan(ending, { observation }, NOW_MS, DEFAULT_TIMINGS);
    assert.ok(action?.kind === 'record');
    assert.deepEqual([action.change.set.finalState, action.change.set.endedAtMs], ['TERMINATED', NOW_MS - 60_000]);
  });

  it('was never created if its place was lost before the first confirmation', async () => {
    const { observation } = await ask('lost', 'create');
    assert.ok(observation.seen === 'refusal' && observation.isRejected && !observation.isTemporary);
  });

  it('gets the place where it was found if its sandbox is older than places', async () => {
    const { observation } = await ask('here', 'inspect');
    const [action] = plan(made, { observation }, NOW_MS, DEFAULT_TIMINGS);
    assert.ok(action?.kind === 'record');
    assert.equal(action.change.set.place, 'here');
  });
});
