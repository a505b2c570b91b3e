import type { Route } from '../../../core/plugin';
import type { SandboxService } from '../service';
import { adminList } from './admin-list';
import { adminOrphans } from './admin-orphans';
import { audit } from './audit';
import { changeState } from './change-state';
import { createQuote } from './create-quote';
import { createSandbox } from './create-sandbox';
import { history } from './history';
import { listOfferings } from './list-offerings';
import { listSandboxes } from './list-sandboxes';
import { showOperation } from './show-operation';
import { showSandbox } from './show-sandbox';

/** One endpoint per file; contract section 8.1. */
export function sandboxRoutes(service: SandboxService): readonly Route[] {
  return [
    listOfferings(service),
    createQuote(service),
    createSandbox(service),
    listSandboxes(service),
    history(service),
    showSandbox(service),
    ...changeState(service),
    showOperation(service),
    audit(service),
    adminList(service),
    adminOrphans(service),
  ];
}
