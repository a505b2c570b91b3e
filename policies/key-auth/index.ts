import { fail } from '../../core/errors';
import { definePolicy } from '../../core/policy';
import { usageRecord } from '../../core/usage-record';

export default definePolicy({
  name: 'key-auth',
  summary: 'Who is calling?',
  schema: { type: 'object', properties: {} },
  needs: [],
  provides: ['key'],
  boundsItself: true,
  prepare: (_, gateway) => async (call, request) => {
    if (gateway.isDraining()) throw fail('DRAINING', { retryAfterSeconds: 1 });
    const key = await gateway.keys.identify(request);
    // From here on a refusal is told to, and recorded for, somebody: only if the key is still good. Once there is a
    // reservation the ledger has confirmed the key, and settling writes the record.
    call.onRefusal(async (error) => {
      if (call.facts.reservationId !== undefined || error.code === 'INVALID_API_KEY') return error;
      if (error.code !== 'LEDGER_UNAVAILABLE') await gateway.keys.confirm(key);
      gateway.refusedCalls.add(usageRecord(call, { billing: 'released', configRevision: gateway.configRevision }));
      return error;
    });
    return { key };
  },
});
