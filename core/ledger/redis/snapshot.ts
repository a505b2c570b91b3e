import type { AccountSnapshot, ClosedEntry, PaidIntent } from '../ledger';
import { coverHolds, STATE_AFTER } from '../snapshot';
import { counterFields, settingFields } from './key-fields';

/** Describes an account for restore.lua. All values are strings, because numbers in Lua would lose digits. */
export function describeSnapshot(account: AccountSnapshot): string {
  const { holds, heldE8, heldByKey } = coverHolds(account);
  return JSON.stringify({
    status: account.status,
    available: (account.postedE8 - heldE8).toString(),
    held: heldE8.toString(),
    posted: account.postedE8.toString(),
    seq: String(account.seq),
    keys: account.keys.map((key) => ({
      id: key.keyId,
      held: (heldByKey.get(key.keyId) ?? 0n).toString(),
      rev: String(key.settings.rev),
      settings: settingFields(key),
      counters: counterFields(key),
    })),
    closed: account.closed.map(describeClosed),
    open: holds.map(({ rid, keyId, amountE8 }) => ({ rid, key: keyId, amount: amountE8.toString() })),
  });
}

function describeClosed(entry: ClosedEntry): object {
  return {
    rid: entry.rid,
    state: STATE_AFTER[entry.kind],
    key: entry.keyId ?? '',
    charged: (-entry.amountE8).toString(),
    shortfall: entry.shortfallE8.toString(),
    ...(entry.intent === undefined ? {} : { intent: describeIntent(entry.intent) }),
  };
}

function describeIntent({ key, body, requestId }: PaidIntent): object {
  return { key, body, request: requestId };
}
