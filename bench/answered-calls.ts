/** Compares the answers that clients received with the charges for them. */
import { formatUsd } from '../core/base/money';

/** The answers that clients received. Costs are in E8 (1e-8 USD). */
export interface Called {
  /** The cost that each successful answer stated, by the request id of its call. */
  readonly answered: ReadonlyMap<string, bigint>;
  /** Request ids of answers with another status than 200. */
  readonly refused: ReadonlySet<string>;
  /** The number of calls whose connection ended before the client received the whole answer. */
  readonly cut: number;
}

/** The charges that Redis and Postgres contain. Costs are in E8 (1e-8 USD). */
export interface Charged {
  readonly records: readonly { readonly requestId: string; readonly costE8: bigint }[];
  /** The sum of all ledger entries in Postgres except credits. */
  readonly entriesE8: bigint;
  /** The sum of the accounts' credits minus the sum of their balances. */
  readonly spentE8: bigint;
}

export interface Comparison {
  readonly answeredE8: bigint;
  readonly chargedE8: bigint;
  /** The number of charged calls whose connection ended before the whole answer (cut calls), and the sum of their charges. */
  readonly chargedCut: number;
  readonly chargedCutE8: bigint;
  /** All charges, minus the costs of answered calls and the charges for calls whose connection ended early. The correct value is 0. */
  readonly differenceE8: bigint;
  /** The violations, as text. The ledger must charge an answered call exactly once, a call cut before its end at most once, and a refused call never. */
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
