import { asSessionRoute, type Route } from '../../../core/api/route';
import type { InsideService, SandboxService } from '../service';
import { adminListSandboxesRoute, listOrphansRoute, listPlacesRoute, losePlaceRoute } from './admin';
import { readCommandRoute, readLogsRoute, runCommandRoute, signalCommandRoute } from './commands';
import {
  downloadFileRoute,
  listFilesRoute,
  readFileRoute,
  removeFileRoute,
  uploadFileRoute,
  writeFileRoute,
} from './files';
import { createQuoteRoute, listAuditRoute, listHistoryRoute, listOfferingsRoute, listSandboxesRoute } from './lists';
import { openPortRoute, proxyPortRoute, revokePortRoute } from './ports';
import {
  changeStateRoute,
  createSandboxRoute,
  deleteSandboxRoute,
  showOperationRoute,
  showSandboxRoute,
} from './sandboxes';

/** Returns the plugin's routes, one endpoint per file; docs/contract.md, section 8.1. */
export function sandboxRoutes(service: SandboxService): readonly Route[] {
  return [
    listOfferingsRoute(service),
    createQuoteRoute(service),
    createSandboxRoute(service),
    listSandboxesRoute(service),
    listHistoryRoute(service),
    showSandboxRoute(service),
    changeStateRoute(service, 'suspend'),
    changeStateRoute(service, 'resume'),
    changeStateRoute(service, 'terminate'),
    deleteSandboxRoute(service),
    showOperationRoute(service),
    listAuditRoute(service),
    ...consoleRoutes(service),
    adminListSandboxesRoute(service),
    listOrphansRoute(service),
    listPlacesRoute(service),
    losePlaceRoute(service),
  ];
}

/** Returns the routes that the console uses; docs/console.md. */
function consoleRoutes(service: SandboxService): readonly Route[] {
  return [
    asSessionRoute(listHistoryRoute(service), '/console/api/sandboxes'),
    asSessionRoute(showSandboxRoute(service), '/console/api/sandboxes/{id}'),
    asSessionRoute(listAuditRoute(service), '/console/api/sandboxes/{id}/audit'),
    asSessionRoute(deleteSandboxRoute(service), '/console/api/sandboxes/{id}'),
  ];
}

/** Returns the routes that work inside a running sandbox. */
export function insideRoutes(inside: InsideService): readonly Route[] {
  return [
    runCommandRoute(inside),
    readCommandRoute(inside),
    readLogsRoute(inside),
    signalCommandRoute(inside),
    writeFileRoute(inside),
    readFileRoute(inside),
    removeFileRoute(inside),
    listFilesRoute(inside),
    uploadFileRoute(inside),
    downloadFileRoute(inside),
    openPortRoute(inside),
    revokePortRoute(inside),
    proxyPortRoute(inside),
  ];
}
