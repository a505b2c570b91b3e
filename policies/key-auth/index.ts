import { isKeyRefusal } from '../../core/accounts/check-access';
import { CONCURRENT, type ConcurrencyLimits } from '../../core/accounts/concurrent-calls';
import type { CallKey } from '../../core/accounts/identify';
import { fail, GatewayError } from '../../core/base/errors';
import { andThen } from '../../core/base/maybe-later';
import { integer } from '../../core/base/setting-schemas';
import { usageRecord } from '../../core/calls/usage-record';
import type { Gateway } from '../../core/gateway/gateway';
import { type CallWith, definePolicy } from '../../core/gateway/policy';

export default definePolicy({
  contract: 'policy/1',
  name: 'key-auth',
  summary: 'Who is calling?',
  schema: {
    type: 'object',
    properties: {
      concurrentCallsPerKey: integer(
        'Concurrent calls of one key, in one process. Its requests to the other routes count too.',
        { minimum: 1, default: 4_000 },
      ),
      concurrentCallsPerAccount: integer(
        'Concurrent calls of all keys of an account, in one process. Their requests to the other routes count too.',
        { minimum: 1, default: 8_000 },
      ),
    },
  },
  needs: [],
  provides: ['key'],
  boundsItself: true,
  declares: (settings) => ({ concurrentCalls: limitsOf(settings) }),
  prepare: (settings, gateway) => {
    const limits = limitsOf(settings);
    return (call, request) => {
      if (gateway.isStopping()) throw fail('DRAINING', { retryAfterSeconds: 1 });
      return andThen(gateway.keys.identify(request), (key) => admit(gateway, call, key, limits));
    };
  },
});

/** Starts the call of a valid key. @throws CONCURRENCY_LIMIT */
function admit(
  gateway: Gateway,
  call: CallWith<never>,
  key: CallKey,
  limits: ConcurrencyLimits,
): { readonly key: CallKey } {
  // The client sees a refusal only if its API key is still valid, and only then a usage record is written for the refusal. A call with a reservation
  // needs no check, because the ledger has confirmed its key. The settlement of the reservation then writes the record.
  call.onRefusal(async (error) => {
    if (call.facts.reservationId !== undefined || isKeyRefusal(error)) return error;
    const { shown, newest } = await confirmed(gateway, key, error);
    if (shown !== error) Object.assign(call.facts, { status: shown.status, errorCode: shown.code });
    gateway.refusedCalls.add(usageRecord(call, { billing: 'released' }, gateway.configRevision, newest.settings));
    return shown;
  });
  call.onEnd(CONCURRENT.enter(key, limits));
  return { key };
}

interface LimitSettings {
  readonly concurrentCallsPerKey: number;
  readonly concurrentCallsPerAccount: number;
}

function limitsOf({ concurrentCallsPerKey, concurrentCallsPerAccount }: LimitSettings): ConcurrencyLimits {
  return { perKey: concurrentCallsPerKey, perAccount: concurrentCallsPerAccount };
}

/** The error that the client of a refused call gets, and the call's key with its newest settings. */
interface Confirmed {
  readonly shown: GatewayError;
  readonly newest: CallKey;
}

/**
 * Returns the error that the client gets if its key is still valid. A refusal caused by the client counts against the key's limit per
 * minute. When that limit is used up, the client gets the limit's error instead.
 * @throws INVALID_API_KEY, API_KEY_EXPIRED, ADDRESS_NOT_ALLOWED, LEDGER_UNAVAILABLE
 */
async function confirmed(gateway: Gateway, key: CallKey, error: GatewayError): Promise<Confirmed> {
  if (error.code === 'LEDGER_UNAVAILABLE') return { shown: error, newest: key };
  if (error.status >= 500 || error.code === 'KEY_RATE_LIMITED')
    return { shown: error, newest: await gateway.keys.confirm(key) };
  try {
    return { shown: error, newest: await gateway.keys.countCall(key) };
  } catch (thrown) {
    if (thrown instanceof GatewayError && thrown.code === 'KEY_RATE_LIMITED') return { shown: thrown, newest: key };
    throw thrown;
  }
}
