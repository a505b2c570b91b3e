import type { ComponentChildren } from 'preact';
import type { Resource } from '../resource';
import { Panel } from './page';
import { Bone } from './states';
import { When } from './values';

/** A column of a table. The cells of the first column are the headers of the rows. */
export interface Column<Row> {
  readonly title: ComponentChildren;
  readonly isNumber?: boolean;
  /** The smallest screen width on which the column is shown. Default: any width. */
  readonly room?: 'from-m' | 'from-l' | undefined;
  /** The CSS classes of the column's cells. */
  readonly look?: string;
  readonly cell: (row: Row) => ComponentChildren;
}

interface Props<Row> {
  /** The accessible name of the frame in which the table scrolls. Without this name, the table has no scrolling frame. */
  readonly label?: string;
  readonly caption: string;
  readonly look?: string;
  readonly columns: readonly Column<Row>[];
  /** The rows; undefined while they are loading. */
  readonly rows?: readonly Row[] | undefined;
  /** The list whose items are the table's rows. It replaces `rows`. */
  readonly list?: Resource<{ readonly items: readonly Row[] }>;
  readonly keyOf: (row: Row) => string;
  /** The number of placeholder rows that the table shows while loading. */
  readonly bones?: number;
  /** Called when the user clicks a row, but not on a link in it. */
  readonly open?: (row: Row) => void;
  readonly lookOf?: (row: Row) => string;
  readonly foot?: ComponentChildren;
  /** The text below the column headers if there are no rows. */
  readonly none?: string | undefined;
  /** The content instead of the whole table if there are no rows. */
  readonly empty?: ComponentChildren;
}

export function Table<Row>(props: Props<Row>) {
  const { label, caption, look, columns, list, rows = list?.data?.items } = props;
  const { keyOf, bones = 3, open, lookOf, foot, none, empty } = props;
  const isStale = list?.isLoading === true;
  if (empty !== undefined && rows?.length === 0 && !isStale) return <>{empty}</>;
  return (
    <Frame label={label} isStale={isStale && rows !== undefined}>
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
      {rows?.length === 0 && none !== undefined && <p class="table-none quiet small">{none}</p>}
    </Frame>
  );
}

/** Placeholder rows that the table shows while loading. */
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

/** Returns whether a click is on a row but not on a link. A click that ends a text selection does not count. */
function isBesideLinks({ target }: MouseEvent): boolean {
  return target instanceof Element && target.closest('a') === null && window.getSelection()?.isCollapsed !== false;
}

interface TablePanelProps<Row> extends Omit<Props<Row>, 'label'> {
  readonly title: string;
  /** Whether the page itself shows the title and the failure of the list, so that the panel does not repeat them. */
  readonly isWholePage?: boolean;
  /** A short remark in the heading. */
  readonly hint?: string;
  readonly actions?: ComponentChildren;
  /** Content below the table. */
  readonly children?: ComponentChildren;
}

/** A panel that contains a table. */
export function TablePanel<Row>(props: TablePanelProps<Row>) {
  const { title, isWholePage = false, hint, actions, children, ...table } = props;
  const named = isWholePage ? { label: title } : { title, hint, actions, from: table.list };
  return (
    <Panel {...named}>
      <Table label={title} {...table} />
      {children}
    </Panel>
  );
}

interface FrameProps {
  readonly label: string | undefined;
  /** Whether the rows are outdated because newer ones are loading. */
  readonly isStale: boolean;
  readonly children: ComponentChildren;
}

/** The frame of a table. A table wider than the screen scrolls inside its frame, with the keyboard too, instead of widening the page. */
function Frame({ label, isStale, children }: FrameProps) {
  if (label === undefined) return <>{children}</>;
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

interface TimeOptions {
  readonly room?: Column<unknown>['room'];
  readonly look?: string;
  readonly as?: (at: string) => string;
  readonly none?: string;
}

/** A column of times. `look`, `as` and `none` set its classes, its format, and the text for a missing time. */
export function timeColumn<Row>(
  title: string,
  atOf: (row: Row) => string | null,
  { room, look = 'quiet small', ...shown }: TimeOptions = {},
): Column<Row> {
  return { title, room, look, cell: (row) => <When at={atOf(row)} {...shown} /> };
}

/** The last column of a table, with the buttons of each row. */
export function actionsColumn<Row>(cell: Column<Row>['cell']): Column<Row> {
  return { title: <span class="unseen">Actions</span>, look: 'actions', cell };
}
