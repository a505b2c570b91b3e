import { asSessionRoute, type Route } from '../../../core/api/route';
import type { InsideService } from '../inside';
import type { SandboxService } from '../service';
import { adminListSandboxesRoute } from './admin-list-sandboxes';
import { changeStateRoute } from './change-state';
import { createQuoteRoute } from './create-quote';
import { createSandboxRoute } from './create-sandbox';
import { deleteSandboxRoute } from './delete-sandbox';
import { downloadFileRoute } from './download-file';
import { listAuditRoute } from './list-audit';
import { listFilesRoute } from './list-files';
import { listHistoryRoute } from './list-history';
import { listOfferingsRoute } from './list-offerings';
import { listOrphansRoute } from './list-orphans';
import { listPlacesRoute } from './list-places';
import { listSandboxesRoute } from './list-sandboxes';
import { losePlaceRoute } from './lose-place';
import { openPortRoute } from './open-port';
import { proxyPortRoute } from './proxy-port';
import { readCommandRoute } from './read-command';
import { readFileRoute } from './read-file';
import { readLogsRoute } from './read-logs';
import { removeFileRoute } from './remove-file';
import { revokePortRoute } from './revoke-port';
import { runCommandRoute } from './run-command';
import { showOperationRoute } from './show-operation';
import { showSandboxRoute } from './show-sandbox';
import { signalCommandRoute } from './signal-command';
import { uploadFileRoute } from './upload-file';
import { writeFileRoute } from './write-file';

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
