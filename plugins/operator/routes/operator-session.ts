import type { IncomingMessage, ServerResponse } from 'node:http';
import { OPERATOR_COOKIE, setCookie } from '../../../core/http/cookies';
import { object, shape } from '../../../core/http/shape';
import type { OperatorSession } from '../../../core/operators/operators';
import { ROLE } from '../../../core/operators/roles';
import { csrfTokenOf } from '../../../core/sign-in/sessions';

/** Shows a session to the operator's page. */
export function showOperatorSession(session: OperatorSession): object {
  const { operator, createdAt, expiresAt } = session;
  return {
    operator: { name: operator.name, role: operator.role },
    csrfToken: csrfTokenOf(session),
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
  };
}

/** The result of `showOperatorSession`. */
export const OPERATOR_SESSION = object({
  operator: object({ name: shape.text, role: ROLE }),
  csrfToken: shape.text,
  createdAt: shape.time,
  expiresAt: shape.time,
});

/** Sets the session cookie, or clears it. A proxy may terminate TLS, so the `Origin` header decides whether the cookie is secure. */
export function giveSession(
  request: IncomingMessage,
  response: ServerResponse,
  session: OperatorSession | undefined,
): void {
  const secure = request.headers.origin?.startsWith('https:') === true;
  const lastsMs = session === undefined ? 0 : session.expiresAt.getTime() - session.createdAt.getTime();
  const options = { sameSite: 'Strict', maxAgeSeconds: Math.floor(lastsMs / 1_000), secure } as const;
  setCookie(response, OPERATOR_COOKIE, session?.token ?? '', options);
}
