import type { Route } from '../../../core/plugin';
import type { SandboxService } from '../service';
import { adminList } from './admin-list';
import { adminOrphans } from './admin-orphans';
import { audit } from './audit';
import { changeState } from './change-state';
import { consoleRoutes } from './console';
import { createQuote } from './create-quote';
import { createSandbox } from './create-sandbox';
import { history } from './history';
import { listOfferings } from './list-offerings';
import { listSandboxes } from './list-sandboxes';
import { showOperation } from './show-operation';
import { showSandbox } from './show-sandbox';

/** One endpoint per file; contract section 8.1. */
export function sandboxRoutes(service: SandboxService): readonly Route[] {
  const changes = changeState(service);
  return [
    listOfferings(service),
    createQuote(service),
    createSandbox(service),
    listSandboxes(service),
    history(service),
    showSandbox(service),
    ...changes,
    showOperation(service),
    audit(service),
    ...consoleRoutes([history(service), showSandbox(service), audit(service), ...changes]),
    adminList(service),
    adminOrphans(service),
  ];
}
