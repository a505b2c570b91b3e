import { asSessionRoute, type Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { consoleListRecordsRoute, consoleShowRecordRoute, showSeriesRoute, showTotalsRoute } from './console';
import { adminUsageRoutes, exportRecordsRoute, listRecordsRoute, showRecordRoute } from './records';
import { showBalanceRoute } from './show-balance';

/** Lists the endpoints of usage; docs/contract.md, sections 1 and 6. */
export function usageRoutes(gateway: PluginGateway): readonly Route[] {
  return [
    showBalanceRoute(gateway.calls),
    listRecordsRoute(gateway),
    exportRecordsRoute(gateway),
    showRecordRoute(gateway),
    ...adminUsageRoutes(gateway),
    consoleListRecordsRoute(gateway),
    showTotalsRoute(gateway),
    showSeriesRoute(gateway),
    asSessionRoute(exportRecordsRoute(gateway), '/console/api/usage.csv'),
    consoleShowRecordRoute(gateway),
  ];
}
