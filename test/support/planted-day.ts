import type { Knex } from 'knex';
import type { RecordedAttempt } from '../../core/catalog/attempt-fields';
import { insertAttempts } from '../../core/ledger/outbox/rows';
import type { VendorUsage } from './report-vendors';

/** The prices 3 and 15 USD per million tokens, in E8. */
export const INPUT_RATE = 300_000_000n;
export const OUTPUT_RATE = 1_500_000_000n;

interface Planted {
  /** The counts of a truthful vendor, before a test plants anything. */
  readonly usage: VendorUsage[];
  /** The charge in 1e-14 USD. */
  readonly costE14: bigint;
}

const ROWS_AT_ONCE = 2_000;

/** Makes an attempt of the upstream `acme`. */
export function sampleAttempt(day: string, at: number, more: Partial<RecordedAttempt> = {}): RecordedAttempt {
  return {
    startedAtMs: Date.parse(day) + ((at * 863) % 86_400_000),
    upstream: 'acme',
    credential: 'ACME_KEY',
    model: 'large',
    cause: 'answered',
    outcome: 'answered',
    status: 200,
    ms: 900,
    isReported: true,
    costE14: '0',
    ...more,
  };
}

/** Makes an attempt with its counts and their exact cost. */
export function countedAttempt(
  day: string,
  at: number,
  { input, output }: { readonly input: number; readonly output: number },
  more: Partial<RecordedAttempt> = {},
): RecordedAttempt {
  const costE14 = (BigInt(input) * INPUT_RATE + BigInt(output) * OUTPUT_RATE).toString();
  return sampleAttempt(day, at, { passes: [{ input, output }], costE14, ...more });
}

/**
 * Writes a day of calls in bulk: most succeed, some fail, and there are a mirrored call and a test. Returns what a truthful vendor counts for them.
 */
export async function writeDay(database: Knex, day: string, calls: number): Promise<Planted> {
  let [input, output, small] = [0, 0, 0];
  for (let from = 0; from < calls; from += ROWS_AT_ONCE) {
    const rows = Array.from({ length: Math.min(ROWS_AT_ONCE, calls - from) }, (_, index) => {
      const at = from + index;
      const counts = { input: 100 + ((at * 7) % 5_000), output: 1 + ((at * 13) % 900) };
      const isSmall = at % 10 === 9;
      if (isSmall) small += counts.input;
      else {
        input += counts.input;
        output += counts.output;
      }
      const cause = at === 0 ? 'mirror' : at === 1 ? 'test' : 'answered';
      const own = isSmall
        ? sampleAttempt(day, at, {
            model: 'small',
            passes: [{ input: counts.input }],
            costE14: `${BigInt(counts.input) * INPUT_RATE}`,
          })
        : countedAttempt(day, at, counts, { cause });
      const failed = sampleAttempt(day, at, { cause: 'failed', outcome: 'status', status: 529, isReported: false });
      return { requestId: `req_${day}_${at}`, accountId: null, made: at % 50 === 0 ? [failed, own] : [own] };
    });
    await insertAttempts(database, rows);
  }
  const usage = [
    { day, apiKeyId: 'apikey_acme', model: 'large-20260101', input, output },
    { day, apiKeyId: 'apikey_acme', model: 'small', input: small },
  ];
  return { usage, costE14: BigInt(input + small) * INPUT_RATE + BigInt(output) * OUTPUT_RATE };
}

/** Converts 1e-14 USD to a decimal number of cents with all digits. */
export function centsOf(amountE14: bigint): string {
  const digits = amountE14.toString().padStart(13, '0');
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`;
}
