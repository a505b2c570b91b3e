import type { AccountRoute } from '../../../core/api/route';
import type { SandboxService } from '../service';
import { STATE_ANSWERS, STATE_HEADERS, stateHandler, TERMINATE_ERRORS } from './state-change';

export function deleteSandboxRoute(service: SandboxService): AccountRoute {
  return {
    listener: 'public',
    auth: 'key',
    method: 'DELETE',
    path: '/v1/sandboxes/{id}',
    summary: 'End a sandbox; the same as terminate.',
    headers: STATE_HEADERS,
    answers: STATE_ANSWERS,
    errors: TERMINATE_ERRORS,
    handle: stateHandler(service, 'TERMINATE'),
  };
}
