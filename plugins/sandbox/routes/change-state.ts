import type { AccountRoute } from '../../../core/api/route';
import type { ErrorCode } from '../../../core/errors';
import { IDEMPOTENCY_KEY } from '../asking/creation';
import type { SandboxService } from '../service';
import { STATE_ANSWERS, STATE_BODY, STATE_HEADERS, stateHandler, TERMINATE_ERRORS } from './state-change';

const SUSPEND_ERRORS: readonly ErrorCode[] = [
  ...TERMINATE_ERRORS,
  'SANDBOX_NOT_RUNNING',
  'SANDBOX_FINAL',
  'NOT_SUPPORTED',
];
const RESUME_ERRORS: readonly ErrorCode[] = [
  ...SUSPEND_ERRORS,
  'INSUFFICIENT_BALANCE',
  'KEY_LIMIT_EXCEEDED',
  'FORBIDDEN',
];

/** The endpoints that change a state. They differ only in the state that they request. */
const CHANGES = {
  suspend: { verb: 'SUSPEND', summary: 'Suspend a running sandbox.', errors: SUSPEND_ERRORS },
  resume: { verb: 'RESUME', summary: 'Resume a suspended sandbox.', errors: RESUME_ERRORS },
  terminate: { verb: 'TERMINATE', summary: 'End a sandbox; always accepted.', errors: TERMINATE_ERRORS },
} as const;

export function changeStateRoute(service: SandboxService, word: keyof typeof CHANGES): AccountRoute {
  const { verb, summary, errors } = CHANGES[word];
  return {
    listener: 'public',
    auth: 'key',
    method: 'POST',
    path: `/v1/sandboxes/{id}/${word}`,
    summary,
    headers: STATE_HEADERS,
    body: { ...STATE_BODY, properties: { idempotencyKey: IDEMPOTENCY_KEY }, example: { idempotencyKey: 'evening-7' } },
    answers: STATE_ANSWERS,
    errors,
    handle: stateHandler(service, verb),
  };
}
