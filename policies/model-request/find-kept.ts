import type { CallKey } from '../../core/accounts/identify';
import type { KeptPlace } from '../../core/calls/call';
import { fail } from '../../core/errors';
import type { Gateway } from '../../core/gateway/gateway';
import type { UpstreamSocket } from '../../core/wire/upstream-socket';
import type { NamedObject } from './weigh-members';

/** What a call names at a vendor. */
export interface KeptForCall {
  readonly place: KeptPlace;
  /** Of all objects, as they were reported; null where one of them is unknown. */
  readonly tokens: number | null;
}

/**
 * Finds the objects that a call names among those of its account, and among the answers on its own WebSocket.
 * @throws KEPT_OBJECT_NOT_FOUND, INVALID_FIELD where two of them are at different places, DATABASE_UNAVAILABLE
 */
export async function findKept(
  { keptObjects }: Pick<Gateway, 'keptObjects'>,
  { accountId }: CallKey,
  named: readonly NamedObject[],
  upstreamSocket: UpstreamSocket | undefined,
): Promise<KeptForCall | undefined> {
  let found: KeptForCall | undefined;
  for (const { kind, id, param } of named) {
    const onSocket = kind === 'previous_response_id' ? upstreamSocket?.find(id) : undefined;
    const object = onSocket ?? (await keptObjects.find(accountId, kind, id));
    if (object === undefined) throw fail('KEPT_OBJECT_NOT_FOUND', { param, message: NOT_FOUND });
    const { upstream, credential, inputTokens, outputTokens } = object;
    const place = found?.place ?? { upstream, credential, param };
    if (place.upstream !== upstream || place.credential !== credential)
      throw fail('INVALID_FIELD', { param, message: `${param}: is kept at another upstream than ${place.param}` });
    found = { place, tokens: sum(found?.tokens, inputTokens, outputTokens) };
  }
  return found;
}

const NOT_FOUND = 'There is nothing of this id that this account has got through this gateway, or it has expired.';

function sum(before: number | null = 0, input: number | undefined, output: number | undefined): number | null {
  return before === null || input === undefined || output === undefined ? null : before + input + output;
}
