import { strict as assert } from 'node:assert';
import { newId } from '../../../core/ids';
import type { SupplierDriver } from '../../../core/supplier';
import { askSupplier } from '../../../plugins/sandbox/ask-supplier';
import type { Sandbox } from '../../../plugins/sandbox/sandbox';
import type { World } from '../../../plugins/sandbox/world';
import { accepted } from './simulation/simulate';

const NOW_MS = Date.UTC(2026, 10, 21);

describe('an instance that its supplier does not have', () => {
  const payer = { accountId: newId(), keyId: newId() };
  const { sandbox } = accepted({ seed: 1, trouble: 0, usd: 0n, endAfterMs: 0 }, payer, NOW_MS);
  const look = (set: Partial<Sandbox>, tooMany: boolean) => {
    const driver = { inspect: async () => ({ kind: 'gone' }) } as unknown as SupplierDriver;
    const world = {
      now: () => NOW_MS,
      driverOf: () => driver,
      noteCall: async () => {},
      areTooManyGone: async () => tooMany,
    } as unknown as World;
    return askSupplier(world, { ...sandbox, supplierRef: { id: 'i1', name: 'tg-1' }, ...set }, 'inspect');
  };

  it('is gone, unless too many are at once: then it is as if nobody had answered', async () => {
    assert.equal((await look({}, true)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS }, false)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS }, true)).seen, 'silence');
  });

  it('is what was asked for, however many they are, when it is being ended', async () => {
    assert.equal((await look({ goneSinceMs: NOW_MS, desiredState: 'TERMINATED' }, true)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS, finalState: 'FAILED' }, true)).seen, 'instance');
  });
});
