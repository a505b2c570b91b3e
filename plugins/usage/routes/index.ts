import { asSessionRoute } from '../../../core/api/console-route';
import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { adminExportRecordsRoute } from './admin-export-records';
import { adminListAttemptsRoute } from './admin-list-attempts';
import { adminListRecordsRoute } from './admin-list-records';
import { adminShowRecordRoute } from './admin-show-record';
import { consoleListRecordsRoute } from './console-list-records';
import { consoleShowRecordRoute } from './console-show-record';
import { exportRecordsRoute } from './export-records';
import { listRecordsRoute } from './list-records';
import { showBalanceRoute } from './show-balance';
import { showRecordRoute } from './show-record';
import { showSeriesRoute } from './show-series';
import { showTotalsRoute } from './show-totals';

/** Lists the endpoints of usage, one per file; docs/contract.md, sections 1 and 6. */
export function usageRoutes(gateway: PluginGateway): readonly Route[] {
  return [
    showBalanceRoute(gateway.ledger),
    listRecordsRoute(gateway),
    exportRecordsRoute(gateway),
    showRecordRoute(gateway),
    adminListRecordsRoute(gateway),
    adminExportRecordsRoute(gateway),
    adminShowRecordRoute(gateway),
    adminListAttemptsRoute(gateway),
    consoleListRecordsRoute(gateway),
    showTotalsRoute(gateway),
    showSeriesRoute(gateway),
    asSessionRoute(exportRecordsRoute(gateway), '/console/api/usage.csv'),
    consoleShowRecordRoute(gateway),
  ];
}
