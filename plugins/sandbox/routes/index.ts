import type { Route } from '../../../core/plugin';
import type { SandboxService } from '../service';
import { listOfferings } from './list-offerings';

/** One endpoint per file; contract section 8.1. */
export function sandboxRoutes(service: SandboxService): readonly Route[] {
  return [listOfferings(service)];
}
