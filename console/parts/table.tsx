import type { ComponentChildren } from 'preact';
import { Bone } from './states';

/** A column of a table. The first column names the rows. */
export interface Column<Row> {
  readonly title: ComponentChildren;
  readonly isNumber?: boolean;
  /** The width of the screen from which the column is shown. */
  readonly room?: 'from-m' | 'from-l' | undefined;
  /** The classes of its cells. */
  readonly look?: string;
  readonly cell: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  readonly label: string;
  readonly caption: string;
  readonly look?: string;
  readonly columns: readonly Column<Row>[];
  /** undefined while the rows are loading. */
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  /** The number of placeholder rows while loading. */
  readonly bones?: number;
  readonly isStale?: boolean;
  /** Called for a click on a row outside its links. */
  readonly open?: (row: Row) => void;
  readonly lookOf?: (row: Row) => string;
  readonly foot?: ComponentChildren;
  /** The text below the head if there are no rows. */
  readonly none?: string | undefined;
}

export function Table<Row>({
  label,
  caption,
  look,
  columns,
  rows,
  keyOf,
  bones = 3,
  isStale,
  open,
  lookOf,
  foot,
  none,
}: Props<Row>) {
  return (
    <TableFrame label={label} isStale={isStale === true && rows !== undefined}>
      <table class={look}>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the item has no other key
              <th key={at} scope="col" class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows === undefined && <BoneRows rows={bones} columns={columns} />}
          {rows?.map((row) => (
            <tr
              key={keyOf(row)}
              class={classes(open && 'opens', lookOf?.(row))}
              onClick={open && ((event) => isBesideLinks(event) && open(row))}
            >
              {columns.map((column, at) => {
                const Cell = at === 0 ? 'th' : 'td';
                return (
                  // biome-ignore lint/suspicious/noArrayIndexKey: the item has no other key
                  <Cell key={at} scope={at === 0 ? 'row' : undefined} class={classOf(column, column.look)}>
                    {column.cell(row)}
                  </Cell>
                );
              })}
            </tr>
          ))}
        </tbody>
        {foot}
      </table>
      {rows?.length === 0 && none !== undefined && <p class="table-none quiet">{none}</p>}
    </TableFrame>
  );
}

/** The placeholders of rows that are loading. */
function BoneRows<Row>({ rows, columns }: { readonly rows: number; readonly columns: readonly Column<Row>[] }) {
  return (
    <>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: all rows are alike
        <tr key={row}>
          {columns.map((column, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the item has no other key
            <td key={at} class={classOf(column)}>
              <Bone width={`${4 + ((row * 5 + at * 7) % 6)}ch`} />
            </td>
          ))}
        </tr>
      ))}
    </>
  );
}

function classOf<Row>({ isNumber, room }: Column<Row>, look?: string): string | undefined {
  return classes(isNumber === true && 'number', room, look);
}

function classes(...names: readonly (string | false | undefined)[]): string | undefined {
  return names.filter(Boolean).join(' ') || undefined;
}

/** Tells whether a click is outside links. Selecting text does not count as a click. */
function isBesideLinks({ target }: MouseEvent): boolean {
  return target instanceof Element && target.closest('a') === null && window.getSelection()?.isCollapsed !== false;
}

interface FrameProps {
  readonly label: string;
  /** Whether the shown rows are old and newer ones are loading. */
  readonly isStale?: boolean;
  readonly children: ComponentChildren;
}

/** The frame of a table. A table wider than the screen scrolls in it, by the keyboard too; the page does not scroll. */
export function TableFrame({ label, isStale = false, children }: FrameProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section needs a heading
    <div
      class={isStale ? 'table-frame is-stale' : 'table-frame'}
      role="region"
      aria-label={label}
      aria-busy={isStale}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be reachable by the keyboard
      tabIndex={0}
    >
      {children}
    </div>
  );
}
