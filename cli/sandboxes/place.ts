import type { Columns } from '../output';

/** Where sandboxes live that only some nodes reach. */
export interface PlaceShape {
  readonly id: string;
  readonly supplier: string;
  readonly host: string;
  readonly seenAt: string;
  readonly silent: boolean;
  readonly lostAt: string | null;
  readonly activeSandboxes: number;
}

export const PLACE_COLUMNS: Columns<PlaceShape> = {
  id: (row) => row.id,
  supplier: (row) => row.supplier,
  host: (row) => row.host,
  'last seen': (row) => row.seenAt,
  silent: (row) => (row.silent ? 'yes' : 'no'),
  lost: (row) => row.lostAt,
  'active sandboxes': (row) => String(row.activeSandboxes),
};
