import type { Route } from '../../../core/api/route';
import type { Parts } from './callable-models';
import { listModelsRoute } from './list-models';
import { showModelRoute } from './show-model';

/** Clients read the list below the base address of their calls. */
const PREFIXES = ['', '/default', '/quality', '/speed', '/cost'];

/** Lists the endpoints of models, one per file; docs/contract.md, section 1. */
export function modelRoutes(gateway: Parts): readonly Route[] {
  return PREFIXES.flatMap((prefix) => [listModelsRoute(gateway, prefix), showModelRoute(gateway, prefix)]);
}
