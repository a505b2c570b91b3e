import { strict as assert } from 'node:assert';
import { newId } from '../../../../core/base/ids';
import type { Sandbox } from '../../../../plugins/sandbox/lifecycle/sandbox';
import type { SupplierDriver } from '../../../../plugins/sandbox/suppliers/supplier';
import { askSupplier } from '../../../../plugins/sandbox/worker/ask-supplier';
import type { StepContext } from '../../../../plugins/sandbox/worker/step-context';
import { accepted, EVERYWHERE } from '../simulation/simulate';

const NOW_MS = Date.UTC(2026, 10, 21);

describe('an instance that its supplier does not list', () => {
  const payer = { accountId: newId(), keyId: newId() };
  const { sandbox } = accepted({ seed: 1, trouble: 0, usd: 0n, endAfterMs: 0 }, payer, NOW_MS);
  const look = (set: Partial<Sandbox>, tooMany: boolean) => {
    const driver = { inspect: async () => ({ kind: 'gone' }) } as unknown as SupplierDriver;
    const context = {
      now: () => NOW_MS,
      driverOf: () => driver,
      places: EVERYWHERE,
      noteCall: () => {},
      areTooManyGone: async () => tooMany,
    } as unknown as StepContext;
    return askSupplier(context, { ...sandbox, supplierRef: { id: 'i1', name: 'tg-1' }, ...set }, 'inspect');
  };

  it('counts as gone, unless too many instances are missing at once: then the answer is ignored', async () => {
    assert.equal((await look({}, true)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS }, false)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS }, true)).seen, 'silence');
  });

  it('counts as gone if the gateway is ending it, however many instances are missing', async () => {
    assert.equal((await look({ goneSinceMs: NOW_MS, desiredState: 'TERMINATED' }, true)).seen, 'instance');
    assert.equal((await look({ goneSinceMs: NOW_MS, finalState: 'FAILED' }, true)).seen, 'instance');
  });
});
