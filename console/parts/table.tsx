import type { ComponentChildren } from 'preact';
import { Bone } from './states';

/** Of the rows of a table. The first column names them. */
export interface Column<Row> {
  readonly title: ComponentChildren;
  readonly isNumber?: boolean;
  /** It steps back where there is less room. */
  readonly room?: 'from-m' | 'from-l' | undefined;
  /** Classes of its cells. */
  readonly look?: string;
  readonly cell: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  readonly label: string;
  readonly caption: string;
  readonly look?: string;
  readonly columns: readonly Column<Row>[];
  /** Undefined while they are on their way. */
  readonly rows: readonly Row[] | undefined;
  readonly keyOf: (row: Row) => string;
  /** Rows that stand in for those to come. */
  readonly bones?: number;
  readonly isStale?: boolean;
  /** What a click on a row, beside its links, does. */
  readonly open?: (row: Row) => void;
  readonly lookOf?: (row: Row) => string;
  readonly foot?: ComponentChildren;
  /** Stands below the head when there is no row. */
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
              // biome-ignore lint/suspicious/noArrayIndexKey: it has no other name
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
                  // biome-ignore lint/suspicious/noArrayIndexKey: it has no other name
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

/** Rows that are on their way. */
function BoneRows<Row>({ rows, columns }: { readonly rows: number; readonly columns: readonly Column<Row>[] }) {
  return (
    <>
      {Array.from({ length: rows }, (_, row) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: they are all alike
        <tr key={row}>
          {columns.map((column, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: it has no other name
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

/** Text that is being marked is not a click either. */
function isBesideLinks({ target }: MouseEvent): boolean {
  return target instanceof Element && target.closest('a') === null && window.getSelection()?.isCollapsed !== false;
}

interface FrameProps {
  readonly label: string;
  /** What is shown is of before, and what is asked for is on its way. */
  readonly isStale?: boolean;
  readonly children: ComponentChildren;
}

/** Tables wider than the screen scroll in here, by the keyboard too; the page does not. */
export function TableFrame({ label, isStale = false, children }: FrameProps) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a section would want a heading
    <div
      class={isStale ? 'table-frame is-stale' : 'table-frame'}
      role="region"
      aria-label={label}
      aria-busy={isStale}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by the keyboard
      tabIndex={0}
    >
      {children}
    </div>
  );
}
