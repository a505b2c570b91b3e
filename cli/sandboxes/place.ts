import type { Answers } from '../../shapes/answers';
import type { Columns } from '../output';

export type PlaceShape = Answers['GET /admin/v1/sandboxes/places']['items'][number];

export const PLACE_COLUMNS: Columns<PlaceShape> = {
  id: (row) => row.id,
  supplier: (row) => row.supplier,
  host: (row) => row.host,
  'last seen': (row) => row.seenAt,
  silent: (row) => (row.silent ? 'yes' : 'no'),
  lost: (row) => row.lostAt,
  'active sandboxes': (row) => String(row.activeSandboxes),
};
