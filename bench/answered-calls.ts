/** What clients were answered, beside what was charged for it. */
import { formatUsd } from '../core/money';

/** What clients saw. Costs are in E8. */
export interface Called {
  /** The cost that each answer named, by its request id. */
  readonly answered: ReadonlyMap<string, bigint>;
  /** Request ids of answers with another status than 200. */
  readonly refused: ReadonlySet<string>;
  /** Calls whose connection ended before the whole answer. */
  readonly cut: number;
}

/** What the stores have. Costs are in E8. */
export interface Charged {
  readonly records: readonly { readonly requestId: string; readonly costE8: bigint }[];
  /** The sum of all ledger entries but credits. */
  readonly entriesE8: bigint;
  /** By how much the balances are below what was credited. */
  readonly spentE8: bigint;
}

export interface Comparison {
  readonly answeredE8: bigint;
  readonly chargedE8: bigint;
  /** Calls that were cut and are charged, and their sum. */
  readonly chargedCut: number;
  readonly chargedCutE8: bigint;
  /** Charged, less what was answered and what was charged for calls that were cut. */
  readonly differenceE8: bigint;
  /** What must not be, in words: an answered call is charged exactly once, a cut one at most once, a refused one never. */
  readonly wrong: readonly string[];
}

export function compareCharges({ answered, refused, cut }: Called, charged: Charged): Comparison {
  const costs = new Map<string, bigint[]>();
  for (const { requestId, costE8 } of charged.records) costs.set(requestId, [...(costs.get(requestId) ?? []), costE8]);
  const wrongly = [...answered].filter(([id, costE8]) => costs.get(id)?.length !== 1 || costs.get(id)?.[0] !== costE8);
  const twice = [...costs].filter(([, each]) => each.length > 1);
  const paid = charged.records.filter(({ costE8 }) => costE8 > 0n);
  const refusedAndPaid = paid.filter(({ requestId }) => refused.has(requestId));
  const others = paid.filter(({ requestId }) => !answered.has(requestId) && !refused.has(requestId));
  const answeredE8 = sum([...answered.values()]);
  const recordedE8 = sum(charged.records.map(({ costE8 }) => costE8));
  const chargedCutE8 = sum(others.map(({ costE8 }) => costE8));
  const { entriesE8, spentE8 } = charged;
  return {
    answeredE8,
    chargedE8: entriesE8,
    chargedCut: others.length,
    chargedCutE8,
    differenceE8: entriesE8 - answeredE8 - chargedCutE8,
    wrong: [
      ...counted(
        'answered calls are not charged what their answers say, exactly once',
        wrongly.map(([id]) => id),
      ),
      ...counted(
        'calls have more than one record',
        twice.map(([id]) => id),
      ),
      ...counted(
        'refused calls are charged',
        refusedAndPaid.map(({ requestId }) => requestId),
      ),
      ...(others.length > cut ? [`${others.length} other calls are charged, and only ${cut} were cut`] : []),
      ...unequal('ledger entries', entriesE8, 'usage records', recordedE8),
      ...unequal('ledger entries', entriesE8, 'balances', spentE8),
      ...unequal('ledger entries', entriesE8, 'answered and cut calls', answeredE8 + chargedCutE8),
    ],
  };
}

function counted(what: string, ids: readonly string[]): string[] {
  return ids.length === 0 ? [] : [`${ids.length} ${what}: ${ids.slice(0, 3).join(', ')}`];
}

function unequal(one: string, oneE8: bigint, other: string, otherE8: bigint): string[] {
  return oneE8 === otherE8 ? [] : [`${one} are ${formatUsd(oneE8)}, ${other} ${formatUsd(otherE8)}`];
}

function sum(amounts: readonly bigint[]): bigint {
  return amounts.reduce((total, each) => total + each, 0n);
}
