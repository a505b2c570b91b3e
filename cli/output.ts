import { Failure, UsageError } from './failure';

/** The streams of a command: the answer goes to `write`, everything else to `note`. */
export interface Output {
  readonly json: boolean;
  /** Writes a part of the answer, as text or bytes. Waits while the reader is slow. */
  write(text: string | Uint8Array): Promise<void>;
  note(text: string): void;
  /** Reads all of standard input. */
  read(): Promise<string>;
  /** Asks the operator for a line. Absent without a terminal. */
  readonly ask?: (question: string) => Promise<string>;
}

type Cell = string | number | boolean | null | undefined;

export type Columns<T> = Readonly<Record<string, (item: T) => Cell>>;

/** Returns columns that show the members of the same names. */
export function same<K extends string>(...names: readonly K[]): Record<K, (item: Readonly<Record<K, Cell>>) => Cell> {
  const columns = names.map((name) => [name, (item: Readonly<Record<K, Cell>>) => item[name]]);
  return Object.fromEntries(columns) as Record<K, (item: Readonly<Record<K, Cell>>) => Cell>;
}

/** Shows a list: as the original answer for programs, as an aligned table for people. */
export async function showList<T>(output: Output, answer: { items: readonly T[] }, columns: Columns<T>): Promise<void> {
  if (output.json) return showJson(output, answer);
  if (answer.items.length === 0) return output.note('Nothing yet.');
  const rows = answer.items.map((item) => Object.values(columns).map((column) => cell(column(item))));
  await output.write(table([Object.keys(columns), ...rows]));
}

/** Shows one item: as JSON for programs, as a line per field for people. */
export async function showOne<T>(output: Output, item: T, columns: Columns<T>): Promise<void> {
  if (output.json) return showJson(output, item);
  await output.write(table(Object.entries(columns).map(([name, column]) => [name, cell(column(item))])));
}

/** Shows the value for programs, and rows of cells for people. */
export async function showTable(
  output: Output,
  value: unknown,
  rows: readonly (readonly (string | number | null)[])[],
): Promise<void> {
  if (output.json) return showJson(output, value);
  await output.write(table(rows.map((row) => row.map(cell))));
}

/** Shows the value for programs, and lines for people. */
export async function showText(output: Output, value: unknown, lines: readonly string[]): Promise<void> {
  if (output.json) return showJson(output, value);
  await output.write(lines.map((line) => `${line}\n`).join(''));
}

async function showJson(output: Output, value: unknown): Promise<void> {
  await output.write(`${JSON.stringify(value, null, 2)}\n`);
}

function cell(value: Cell): string {
  // Names may hold control characters, which must not move the cursor or change the terminal.
  return value === null || value === undefined ? '-' : String(value).replace(/\p{Cc}/gu, '?');
}

function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  // The last cell of a row needs no width, because nothing follows it.
  const widths = Array.from({ length: columns }, (_, index) =>
    Math.max(0, ...rows.map((row) => (index < row.length - 1 ? (row[index]?.length ?? 0) : 0))),
  );
  return rows
    .map(
      (row) =>
        `${row
          .map((text, index) => text.padEnd(widths[index] ?? 0))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}

interface Question {
  readonly question: string;
  /** What to do instead if no terminal can ask. */
  readonly remedy: string;
  readonly declined: string;
}

/** Returns if the operator answers yes. @throws UsageError without a terminal, Failure for any other answer */
export async function confirm({ ask }: Pick<Output, 'ask'>, { question, remedy, declined }: Question): Promise<void> {
  if (ask === undefined) throw new UsageError(`this is not a terminal, so no confirmation is possible: ${remedy}`);
  const answer = await ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure(declined);
}
