import type { AccountSnapshot, ClosedEntry, EntryKind, KeySettings } from './ledger';

/** The state a reservation, or a credit's tombstone, is in after an entry of this kind. */
export const STATE_AFTER: Readonly<Record<EntryKind, 'credited' | 'settled' | 'released' | 'expired'>> = {
  credit: 'credited',
  charge: 'settled',
  release: 'released',
  expire: 'expired',
};

/** An account as restore.lua reads it: all values strings, for Lua's numbers would lose their digits. */
export function describeSnapshot(account: AccountSnapshot, writeSettings: (settings: KeySettings) => string): string {
  return JSON.stringify({
    status: account.status,
    posted: account.postedE8.toString(),
    seq: String(account.seq),
    keys: account.keys.map((key) => ({
      id: key.keyId,
      status: key.status,
      limit: key.limitE8?.toString() ?? '',
      rev: String(key.settings.rev),
      settings: writeSettings(key.settings),
      spent: key.spentE8.toString(),
    })),
    closed: account.closed.map(describeClosed),
  });
}

function describeClosed(entry: ClosedEntry): object {
  return {
    rid: entry.rid,
    state: STATE_AFTER[entry.kind],
    key: entry.keyId ?? '',
    charged: (-entry.amountE8).toString(),
    shortfall: entry.shortfallE8.toString(),
  };
}
