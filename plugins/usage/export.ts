import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Knex } from 'knex';
import { fail } from '../../core/base/errors';
import type { UsageRecordRow } from '../../core/catalog/usage-fields';
import { answerRoomOf } from '../../core/http/http';
import type { UsageFilters } from '../../core/records/usage-filters';
import { listRecords } from './query';

/** A value in a CSV file. The file follows RFC 4180 and is safe to open in a spreadsheet. */

type CsvCell = string | number | boolean | object | null;

export function csvLine(cells: readonly CsvCell[]): string {
  return `${cells.map(csvCell).join(',')}\r\n`;
}

const DECIMAL = /^-?\d+(\.\d+)?$/;
const FORMULA = /^[=+\-@\t\r\n]/;

/**
 * Writes a cell: numbers stay numbers, and objects become JSON. Text that a spreadsheet would run as a formula gets a leading
 * apostrophe, which marks it as text.
 */
function csvCell(cell: CsvCell): string {
  if (cell === null) return '';
  if (typeof cell === 'object') return csvCell(JSON.stringify(cell));
  if (typeof cell !== 'string' || DECIMAL.test(cell)) return String(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

const BATCH_ROWS = 1_000;

/**
 * Sends every record that passes the filters, batch by batch as the client reads. It holds no database connection between batches, and its
 * memory stays constant. If a batch fails, the gateway closes the connection, so that the answer never looks complete.
 */
export async function sendCsv(
  response: ServerResponse,
  database: Knex,
  filters: UsageFilters,
  columns: readonly string[],
  toItem: (row: UsageRecordRow) => Readonly<Record<string, CsvCell>>,
): Promise<void> {
  // The first batch is read before the status is sent, so that an unavailable database causes an error and not half a file.
  const first = await batch(undefined);
  response.writeHead(200, {
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': 'attachment; filename="usage.csv"',
  });
  await pipeline(Readable.from(lines()), response);

  function batch(cursor: string | undefined) {
    return listRecords(database, filters, { limit: BATCH_ROWS, cursor }, toItem);
  }

  /** Waits until there is memory for the batch that is being sent, and for the text and the records of the next batch. */
  async function withRoom(text: string): Promise<string> {
    const room = answerRoomOf(response);
    if ((await room?.arrive(3 * text.length)) === false) throw fail('OVERLOADED');
    room?.wait();
    return text;
  }

  async function* lines(): AsyncGenerator<string> {
    yield csvLine(columns);
    for (let page = first; ; page = await batch(page.nextCursor)) {
      if (page.items.length > 0)
        yield await withRoom(page.items.map((item) => csvLine(columns.map((name) => item[name] ?? null))).join(''));
      if (page.nextCursor === null) return;
    }
  }
}
