import type { Knex } from 'knex';
import type { ReportedCall } from '../../core/ledger/allowances/reported-calls';
import { smallest } from '../../core/ledger/amount';
import {
  type AccountStatus,
  CLOSED_MS,
  type Intent,
  type KeyStatus,
  type OutboxEntry,
  type TagState,
} from '../../core/ledger/ledger';
import { changeLimits } from '../../core/ledger/limit-fields';
import {
  chainOf,
  dayNumberOf,
  LIMIT_WINDOWS,
  NO_SPENDING,
  newScope,
  type Scope,
  spend,
  tagScope,
} from '../../core/ledger/scopes';
import { ALL_SHARDS } from '../../core/ledger/shard';

export interface EntryRow {
  readonly accountId: string;
  readonly seq: number;
  readonly rid: string;
  readonly kind: string;
  readonly keyId: string | null;
  readonly amountE8: string;
  readonly postedE8: string;
  readonly shortfallE8: string;
  readonly scopes: string | null;
  /** The day on which a charge counts, for example 2026-11-29. */
  readonly day: string;
  readonly writtenAt: number;
}

export interface RecordRow {
  readonly rid: string | null;
  readonly costE8: string;
  /** The intent of a call with an Idempotency-Key. */
  readonly routing?: { readonly intent: Intent };
}

/** An account with one key and one credit, written before the simulation starts. */
export interface AccountRow {
  readonly accountId: string;
  readonly keyId: string;
  readonly limitE8: bigint | undefined;
  readonly moreKeys?: readonly KeyRow[];
  /** The team of all keys, with its limit in all; absent for none. */
  readonly team?: { readonly id: string; limitE8: bigint | undefined; rev: number } | undefined;
  /** The limit that each value of the tag `customer` has in all; absent until it has one. */
  tag?: { readonly limitE8: bigint; readonly rev: number } | undefined;
  status?: AccountStatus;
  readonly creditRid: string;
  readonly creditE8: bigint;
}

export interface KeyRow {
  readonly keyId: string;
  readonly limitE8: bigint | undefined;
  readonly keyStatus?: KeyStatus;
  readonly rev?: number;
}

/** The charge of a call, according to the statements that wrote its entry or its report. */
export interface Charge {
  readonly rid: string;
  readonly costE8: bigint;
  readonly shortfallE8: bigint;
}

type Values = Readonly<Record<string, string>>;
type Gate = <T>(work: () => T) => Promise<T>;

/** The text that identifies each statement. The first match counts. */
const PARTS = [
  'SET LOCAL',
  'AS reached,',
  'pg_try_advisory_xact_lock',
  'AS closing ON true',
  'INSERT INTO ledger_entries',
  'INSERT INTO usage_records',
  'FROM accounts AS account LEFT JOIN ledger_accounts',
  'FROM api_keys AS key',
  'JOIN scopes USING',
  'FROM scope_spending',
  'entry.written_at >',
  'FROM usage_records',
  'FROM credits AS credit',
  'FROM ledger_accounts',
  'entry.kind = wanted.kind',
  'FROM billing_periods AS period',
] as const;
const partsOf = new Map<string, (typeof PARTS)[number]>();

function partIn(sql: string): (typeof PARTS)[number] {
  const part = partsOf.get(sql) ?? PARTS.find((each) => sql.includes(each));
  if (part === undefined) throw new Error(`the simulated database does not know: ${sql.slice(0, 80)}`);
  partsOf.set(sql, part);
  return part;
}

/** How long a waiter for a lock pauses before it tries again. */
const LOCK_LOOK_MS = 20;

/**
 * Simulates the tables for shipper, recovery and spool. It identifies their statements by their text, and fails for an unknown one. Transactions are
 * atomic, locks are held to their end, and other connections see writes after the commit.
 */
export class SimulatedDatabase {
  readonly accounts: AccountRow[] = [];
  readonly entries = new Map<string, EntryRow>();
  readonly records = new Map<string, RecordRow>();
  /** The end of each account's chain, which the statement that writes entries updates. */
  readonly #chains = new Map<string, EntryRow>();
  readonly #closedBy = new Set<string>();
  /** Reports that the shipper has read, by id. */
  readonly #reports = new Map<string, readonly ReportedCall[]>();
  readonly charges: Charge[] = [];
  readonly #locks = new Map<number | string, Owner>();

  /** Notes a report's calls, which arrive with its entry. */
  read({ rid, calls }: OutboxEntry): void {
    if (calls !== undefined) this.#reports.set(rid, calls);
  }

  /** Returns the connection of one process. Each statement and each commit goes through its gate. */
  connect(gate: Gate, isDead: () => boolean): Knex {
    const transaction = async <T>(work: (trx: Knex) => Promise<T>): Promise<T> => {
      const own: Owner = { isDead };
      const pending: (() => void)[] = [];
      try {
        const trx = this.#session(gate, own, (write) => pending.push(write));
        // No statement fails within a savepoint.
        const done = await work(
          Object.assign(trx, {
            transaction: <U>(inner: (trx: Knex) => Promise<U>) => inner(trx),
            // Without a stream, as with PGlite.
            client: { config: {}, acquireConnection: async () => ({}) },
          }),
        );
        await gate(() => {
          for (const write of pending) write();
        });
        return done;
      } finally {
        for (const [lock, owner] of this.#locks) if (owner === own) this.#locks.delete(lock);
      }
    };
    const session = this.#session(gate, { isDead }, (write) => write());
    return Object.assign(session, { transaction }) as unknown as Knex;
  }

  #session(gate: Gate, own: Owner, write: (work: () => void) => void): Knex {
    const raw = async (sql: string, values: Values | readonly number[] = {}) => {
      if (Array.isArray(values)) return this.#waitForLocks(gate, own, values.map(String));
      if (sql.includes('generate_series')) return this.#waitForLocks(gate, own, ALL_SHARDS);
      return gate(() => ({ rows: this.#answer(sql, values as Values, own, write) }));
    };
    const table = () => ({ count: () => gate(() => [{ count: BigInt(this.accounts.length) }]) });
    return Object.assign(table, { raw }) as unknown as Knex;
  }

  #answer(sql: string, values: Values, own: Owner, write: (work: () => void) => void): readonly object[] {
    const list = <T>(name: string) => JSON.parse(values[name] ?? '[]') as T[];
    switch (partIn(sql)) {
      case 'pg_try_advisory_xact_lock':
        return this.#lock(list('shards'), own);
      case 'INSERT INTO ledger_entries':
        return this.#insertEntries(list('rows'), write);
      case 'INSERT INTO usage_records':
        write(() => this.#insertRecords(list('rows')));
        return [];
      case 'FROM accounts AS account LEFT JOIN ledger_accounts':
        return this.#ends(values['after'] ?? '');
      case 'FROM api_keys AS key':
        return this.#keys();
      case 'FROM scope_spending':
        return this.#spending(new Set(list<string>('scopes')));
      case 'entry.written_at >':
        return this.#closedLately();
      case 'FROM usage_records':
        return this.#intents();
      case 'FROM credits AS credit':
        return this.#creditsWithoutEntry(values['after'] ?? '');
      case 'FROM ledger_accounts':
        return [...this.#chains.values()].map(toChain);
      case 'entry.kind = wanted.kind':
        return list<EntryRow>('wanted').filter((wanted) => this.entries.has(keyOf(wanted)));
      case 'AS closing ON true':
        return list<{ rid: string }>('reservations').filter(({ rid }) => this.#closedBy.has(rid));
      case 'SET LOCAL':
      case 'JOIN scopes USING':
        return this.#scopes();
      // The simulation has no budgets to reach, no balances that count as low, and no sandboxes.
      case 'AS reached,':
        return [{ reached: null, low: null }];
      case 'FROM billing_periods AS period':
        return [];
    }
  }

  async #waitForLocks(gate: Gate, own: Owner, wanted: readonly (number | string)[]): Promise<object> {
    for (;;) {
      const areMine = await gate(() => {
        if (!wanted.every((lock) => this.#isFree(lock))) return false;
        for (const lock of wanted) this.#locks.set(lock, own);
        return true;
      });
      if (areMine) return {};
      await new Promise((wake) => setTimeout(wake, LOCK_LOOK_MS));
    }
  }

  #lock(wanted: readonly number[], own: Owner): object[] {
    const free = wanted.filter((shard) => this.#isFree(shard));
    for (const shard of free) this.#locks.set(shard, own);
    return free.map((shard) => ({ shard }));
  }

  /** Returns whether a lock is free. The connection of a dead process is closed, and its locks are released. */
  #isFree(lock: number | string): boolean {
    return this.#locks.get(lock)?.isDead() ?? true;
  }

  /** Returns, as the statement does, the number of new rows, and the accounts with a number that their chain has passed. */
  #insertEntries(rows: readonly Omit<EntryRow, 'writtenAt'>[], write: (work: () => void) => void): object[] {
    const fresh = rows.filter((row) => !this.entries.has(keyOf(row)));
    write(() => {
      for (const row of fresh) {
        if (this.entries.has(keyOf(row))) continue;
        const entry = { ...row, writtenAt: Date.now() };
        this.entries.set(keyOf(row), entry);
        this.#closedBy.add(row.rid);
        if (row.kind === 'charge') this.#charge(row);
        this.#chains.set(row.accountId, entry);
      }
    });
    const late = fresh.filter(({ accountId, seq }) => seq <= (this.#chains.get(accountId)?.seq ?? 0));
    return [{ newRows: fresh.length, steppedBack: late.map(({ accountId }) => accountId) }];
  }

  #charge({ rid, amountE8, shortfallE8 }: Omit<EntryRow, 'writtenAt'>): void {
    const calls = this.#reports.get(rid);
    if (calls === undefined) {
      this.charges.push({ rid, costE8: -BigInt(amountE8), shortfallE8: BigInt(shortfallE8) });
      return;
    }
    // A shortfall of the balance after the ledger went back in time is taken from the last calls.
    let leftE8 = -BigInt(amountE8);
    for (const call of calls) {
      this.#closedBy.add(call.rid);
      const costE8 = smallest(call.costE8, leftE8);
      leftE8 -= costE8;
      if (call.ending === 'settled')
        this.charges.push({ rid: call.rid, costE8, shortfallE8: call.shortfallE8 + call.costE8 - costE8 });
    }
  }

  /** Adds the later reservation to a record without one. */
  #insertRecords(rows: readonly UsageJson[]): void {
    for (const { requestId, rid, costE8, routing } of rows) {
      const there = this.records.get(requestId);
      if (there === undefined || (there.rid === null && rid !== null))
        this.records.set(requestId, { rid, costE8, ...(routing && { routing }) });
    }
  }

  #ends(after: string): object[] {
    const rest = this.accounts.filter(({ accountId }) => accountId > after);
    return rest
      .sort((one, other) => (one.accountId < other.accountId ? -1 : 1))
      .map(({ accountId, status = 'active' }) => {
        const { seq = 0, postedE8 = '0' } = this.#chains.get(accountId) ?? {};
        return { id: accountId, status, seq: String(seq), posted: postedE8 };
      });
  }

  #keys(): object[] {
    const keys = this.accounts.flatMap(
      ({ accountId, moreKeys = [], keyId, limitE8, team }): (KeyRow & Pick<AccountRow, 'accountId' | 'team'>)[] =>
        [{ keyId, limitE8 }, ...moreKeys].map((key) => ({
          accountId,
          team,
          ...key,
        })),
    );
    return keys.map(({ accountId, keyId, limitE8, keyStatus = 'active', rev = 0, team }) => ({
      accountId,
      keyId,
      name: 'key',
      hash: keyId,
      status: keyStatus,
      rev,
      allowedModels: null,
      expires_at: null,
      allowed_addresses: null,
      previous_hash: null,
      previous_until: null,
      team_id: team?.id ?? null,
      member_until: null,
      demands: null,
      teamId: team?.id ?? null,
      memberId: null,
      requiredTags: null,
      ...changeLimits({ limitE8 }),
    }));
  }

  #scopes(): object[] {
    return this.accounts.flatMap(({ accountId, team, tag }) => {
      const row = (scope: string, limitE8: bigint | undefined, rev: number, isLimited: boolean | null) => {
        const limits = limitE8 === undefined ? null : { total: String(limitE8) };
        return { accountId, scope, rev, name: scope, limits, isLimited };
      };
      return [
        ...(team === undefined ? [] : [row(`t:${team.id}`, team.limitE8, team.rev, null)]),
        ...(tag === undefined ? [] : [row(tagScope(accountId, 'customer'), tag.limitE8, tag.rev, true)]),
      ];
    });
  }

  /** Returns what the entries have of tags' values, which have no limits of their own. */
  tagStates(scopes: readonly string[]): readonly TagState[] {
    const spent = this.#spent(new Set(scopes));
    return scopes.map((scope) => {
      return { scope, rev: 0, limits: {}, spending: spent.get(scope)?.spending ?? NO_SPENDING };
    });
  }

  #spending(wanted: ReadonlySet<string>): object[] {
    return [...this.#spent(wanted)].map(([scope, { spending }]) => {
      const texts = LIMIT_WINDOWS.map((window) => [window, String(spending.spentE8[window])]);
      return { scope, lastDay: spending.day, ...Object.fromEntries(texts) };
    });
  }

  #spent(wanted: ReadonlySet<string>): ReadonlyMap<string, Scope> {
    const found = new Map<string, Scope>();
    const charges = [...this.entries.values()].filter(({ kind, amountE8 }) => kind === 'charge' && amountE8 !== '0');
    charges.sort((one, other) => (one.day < other.day ? -1 : Number(one.day > other.day)));
    for (const { accountId, scopes, keyId, amountE8, day } of charges) {
      for (const name of chainOf(accountId, scopes ?? '', keyId ?? '')) {
        if (!wanted.has(name)) continue;
        const scope = found.get(name) ?? newScope();
        found.set(name, scope);
        spend(scope, -BigInt(amountE8), dayNumberOf(Date.parse(day)));
      }
    }
    return found;
  }

  #closedLately(): object[] {
    const since = Date.now() - CLOSED_MS;
    return [...this.entries.values()]
      .filter(({ writtenAt }) => writtenAt > since)
      .map(({ amountE8, shortfallE8, ...entry }) => ({ ...entry, amount: amountE8, shortfall: shortfallE8 }));
  }

  #intents(): object[] {
    return [...this.records].flatMap(([requestId, { rid, costE8, routing }]) =>
      rid === null || costE8 === '0' || routing === undefined ? [] : [{ rid, requestId, ...routing.intent }],
    );
  }

  #creditsWithoutEntry(after: string): object[] {
    return this.accounts
      .filter(({ creditRid }) => creditRid > after && !this.#closedBy.has(creditRid))
      .map(({ creditRid, accountId, creditE8 }) => ({ rid: creditRid, accountId, amount: String(creditE8) }));
  }
}

interface Owner {
  isDead(): boolean;
}

interface UsageJson extends RecordRow {
  readonly requestId: string;
}

function keyOf({ accountId, rid, kind }: Pick<EntryRow, 'accountId' | 'rid' | 'kind'>): string {
  return `${accountId} ${rid} ${kind}`;
}

function toChain({ accountId, seq, postedE8 }: EntryRow): object {
  return { accountId, seq: BigInt(seq), posted: postedE8 };
}
