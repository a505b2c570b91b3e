import { integerReader } from '../../../core/http/query';
import { shape } from '../../../core/http/shape';

/** The query parameters of pages with a number. Their answers carry the total. */
export const NUMBERED_PAGES = {
  page: integerReader(1, 1_000_000, { default: 1 }),
  pageSize: integerReader(1, 100, { default: 50 }),
};

export const PAGE_NUMBERS = { page: shape.integer, pageSize: shape.integer, total: shape.integer };
