import { relative } from 'node:path';
import type { Round } from '../flaky/round';

/** A test that failed in a run of many files. */
export interface Failure {
  /** Relative to the project; undefined if mocha does not know it. */
  readonly file: string | undefined;
  readonly title: string;
}

/** What the second look at the failures of a step found. */
export interface SecondLook {
  /** Files that failed once and passed twice alone. */
  readonly flaky: readonly Failure[];
  /** Failures that stand. */
  readonly failed: readonly Failure[];
}

/** The most files of a gate that may be flaky, and the most files of one step that are worth a second look. */
export const MAX_FLAKY = 3;
const TIMES_ALONE = 2;

/** Files about money, the ledger, revocation, tenants, egress, limits and sandboxes: a second result there is a finding. */
const NEVER_AGAIN = new RegExp(
  [
    ...['ledger', 'money', 'bill', 'hold', 'held', 'clamp', 'excess', 'reserve', 'price', 'cost', 'invoice', 'usage'],
    ...['allowance', 'meter', 'idempotency', 'vendor', 'credit-'],
    ...['revo', 'key-', 'keys', 'identify', 'check-access', 'access', 'operator-tokens', 'sessions'],
    ...['stored-', 'kept-', 'named-items', 'egress', 'address', 'limit', 'concurren', 'hostile'],
    ...['sandbox', 'unisolated', 'proxies', 'security'],
  ].join('|'),
);

/** Returns whether a failed file may be run again. */
export function mayLookAgain(file: string): boolean {
  return !NEVER_AGAIN.test(file.replace(/^test\//, ''));
}

/** Reads mocha's JSON report. @throws SyntaxError if it is cut off */
export function failuresOf(report: string, project: string): readonly Failure[] {
  const { failures } = JSON.parse(report) as { failures: readonly { file?: string; fullTitle: string }[] };
  return failures.map(({ file, fullTitle }) => ({
    file: file === undefined ? undefined : relative(project, file),
    title: fullTitle,
  }));
}

/**
 * Runs each file with a failed test alone, twice. If it passes both times, it is flaky. Files that are never run again, failures
 * without a file and more than {@link MAX_FLAKY} failed files stand as they are.
 */
export async function lookAgain(
  failures: readonly Failure[],
  runAlone: (file: string) => Promise<Round>,
): Promise<SecondLook> {
  const files = [...new Set(failures.map(({ file }) => file))];
  const flaky = new Set<string | undefined>();
  if (files.length <= MAX_FLAKY)
    for (const file of files)
      if (file !== undefined && mayLookAgain(file) && (await passes(file, runAlone))) flaky.add(file);
  return {
    flaky: failures.filter(({ file }) => flaky.has(file)),
    failed: failures.filter(({ file }) => !flaky.has(file)),
  };
}

async function passes(file: string, runAlone: (file: string) => Promise<Round>): Promise<boolean> {
  for (let time = 1; time <= TIMES_ALONE; time += 1) {
    const { passed, failures } = await runAlone(file);
    if (failures.length > 0 || passed === 0) return false;
  }
  return true;
}
