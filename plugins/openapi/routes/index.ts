import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { showDocumentRoute } from './show-document';

/** Lists the endpoints of documents, one per file; docs/contract.md, section 1. */
export function documentRoutes(gateway: PluginGateway): readonly Route[] {
  return [showDocumentRoute(gateway, 'public'), showDocumentRoute(gateway, 'admin')];
}
