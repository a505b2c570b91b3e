import type { Route } from '../../../core/api/route';
import type { Parts } from './callable-models';
import { listModelsRoute } from './list-models';
import { showModelRoute } from './show-model';

/** Clients ask below the base address they call. */
const PREFIXES = ['', '/default', '/quality', '/speed', '/cost'];

/** One endpoint per file; docs/contract.md, section 1. */
export function modelRoutes(gateway: Parts): readonly Route[] {
  return PREFIXES.flatMap((prefix) => [listModelsRoute(gateway, prefix), showModelRoute(gateway, prefix)]);
}
