import type { Route } from '../../../core/api/route';
import type { Parts } from '../ask-vendor';
import { cancelResponseRoute } from './cancel-response';
import { deleteResponseRoute } from './delete-response';
import { listInputItemsRoute } from './list-input-items';
import { showResponseRoute } from './show-response';

/** Clients use stored responses below the base address of their calls. */
const PREFIXES = ['', '/default', '/quality', '/speed', '/cost'];

/** Lists the endpoints of stored responses; docs/contract.md, section 4.6. */
export function storedResponseRoutes(gateway: Parts): readonly Route[] {
  return PREFIXES.flatMap((prefix) => [
    showResponseRoute(gateway, prefix),
    deleteResponseRoute(gateway, prefix),
    cancelResponseRoute(gateway, prefix),
    listInputItemsRoute(gateway, prefix),
  ]);
}
