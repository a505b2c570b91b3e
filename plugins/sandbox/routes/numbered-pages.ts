import { integerReader } from '../../../core/http/query';
import { shape } from '../../../core/http/shape';

/** Pages one can leaf to, with how many there are in all. */
export const NUMBERED_PAGES = {
  page: integerReader(1, 1_000_000, { default: 1 }),
  pageSize: integerReader(1, 100, { default: 50 }),
};

export const PAGE_NUMBERS = { page: shape.integer, pageSize: shape.integer, total: shape.integer };
