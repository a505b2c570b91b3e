import { Failure, UsageError } from './failure';

/** The streams of a command: `write` prints the result, `note` prints everything else. */
export interface Output {
  readonly json: boolean;
  /** Writes a part of the result, as text or bytes. Waits while the reader of standard output is slow. */
  write(text: string | Uint8Array): Promise<void>;
  note(text: string): void;
  /** Reads all of standard input. */
  read(): Promise<string>;
  /** Asks the operator a question and returns the typed line. Absent if there is no terminal. */
  readonly ask?: (question: string) => Promise<string>;
}

type Cell = string | number | boolean | null | undefined;

export type Columns<T> = Readonly<Record<string, (item: T) => Cell>>;

/** Returns table columns. Each has the name of the item's member that it shows. */
export function same<K extends string>(...names: readonly K[]): Record<K, (item: Readonly<Record<K, Cell>>) => Cell> {
  const columns = names.map((name) => [name, (item: Readonly<Record<K, Cell>>) => item[name]]);
  return Object.fromEntries(columns) as Record<K, (item: Readonly<Record<K, Cell>>) => Cell>;
}

/** Prints a list: as the gateway's JSON answer with --json, otherwise as an aligned table. */
export async function showList<T>(output: Output, answer: { items: readonly T[] }, columns: Columns<T>): Promise<void> {
  if (output.json) return showJson(output, answer);
  if (answer.items.length === 0) return output.note('Nothing yet.');
  const rows = answer.items.map((item) => Object.values(columns).map((column) => cell(column(item))));
  await output.write(table([Object.keys(columns), ...rows]));
}

/** Prints one item: as JSON with --json, otherwise with one line per field. */
export async function showOne<T>(output: Output, item: T, columns: Columns<T>): Promise<void> {
  if (output.json) return showJson(output, item);
  await output.write(table(Object.entries(columns).map(([name, column]) => [name, cell(column(item))])));
}

/** Prints a result: `value` as JSON with --json, otherwise rows of cells. */
export async function showTable(
  output: Output,
  value: unknown,
  rows: readonly (readonly (string | number | null)[])[],
): Promise<void> {
  if (output.json) return showJson(output, value);
  await output.write(table(rows.map((row) => row.map(cell))));
}

/** Prints a result: `value` as JSON with --json, otherwise lines of text. */
export async function showText(output: Output, value: unknown, lines: readonly string[]): Promise<void> {
  if (output.json) return showJson(output, value);
  await output.write(lines.map((line) => `${line}\n`).join(''));
}

async function showJson(output: Output, value: unknown): Promise<void> {
  await output.write(`${JSON.stringify(value, null, 2)}\n`);
}

function cell(value: Cell): string {
  // Names may contain control characters. They are replaced, because they could move the cursor or change the terminal.
  return value === null || value === undefined ? '-' : String(value).replace(/\p{Cc}/gu, '?');
}

function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  // Sets no width for the last column, because nothing follows it.
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
  /** What the operator can do instead if there is no terminal for a confirmation. */
  readonly remedy: string;
  readonly declined: string;
}

/** Asks the operator to confirm, and returns after the answer yes. @throws UsageError if there is no terminal, Failure for any other answer */
export async function confirm({ ask }: Pick<Output, 'ask'>, { question, remedy, declined }: Question): Promise<void> {
  if (ask === undefined) throw new UsageError(`this is not a terminal, so no confirmation is possible: ${remedy}`);
  const answer = await ask(`${question} [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure(declined);
}
