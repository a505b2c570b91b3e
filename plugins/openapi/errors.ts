import { allErrors, type DeclaredCode, type ErrorCode, errorKindOf } from '../../core/base/errors';
import { object, oneOf, orNull, shape } from '../../core/http/shape';

/** The error envelope; docs/contract.md, section 3. */
export const ERROR_SCHEMA = object({
  type: oneOf('error'),
  request_id: shape.text,
  error: object({
    type: shape.text,
    code: { $ref: '#/components/schemas/ErrorCode' },
    message: { type: 'string', description: 'For people; the text may change.' },
    param: orNull({ type: 'string', description: 'The field that caused the error.' }),
    details: { type: 'object' },
    retryable: { type: 'boolean', description: 'Whether a retry of the same request can succeed.' },
  }),
});

/** The error of a model call. It can also be the upstream's own error, which the gateway relays with its status and body unchanged. */
export const CALL_ERROR_SCHEMA = {
  anyOf: [
    { $ref: '#/components/schemas/Error' },
    { type: 'object', description: "An upstream's own error, if `X-SVC-Source` is `provider`." },
  ],
};

/** Lists every error code, including those of packages. */
export function errorCodes() {
  return { type: 'string', enum: [...allErrors().keys()] };
}

/** Returns the whole error catalogue, for programs that decide by code. */
export function errorCatalogue() {
  return [...allErrors()].map(([code, kind]) => ({ code, ...kind }));
}

type AnyCode = ErrorCode | DeclaredCode;

/** Returns one answer per status, with the codes that it may carry. @param badRequests codes whose status is 400 here, whatever the catalogue says */
export function errorResponses(
  codes: readonly AnyCode[],
  schema: 'Error' | 'CallError' = 'Error',
  badRequests: readonly AnyCode[] = [],
): Record<string, object> {
  const byStatus = new Map<number, AnyCode[]>(badRequests.length > 0 ? [[400, [...badRequests]]] : []);
  for (const code of new Set(codes)) {
    const { status } = errorKindOf(code);
    byStatus.set(status, [...(byStatus.get(status) ?? []), code]);
  }
  return Object.fromEntries(
    [...byStatus].map(([status, each]) => [String(status), errorResponse(summaries(each), schema)]),
  );
}

function summaries(codes: readonly AnyCode[]): string {
  return codes.map((code) => `\`${code}\`: ${errorKindOf(code).summary}`).join('\n\n');
}

export function errorResponse(description: string, schema: string): object {
  return {
    description,
    headers: {
      'X-SVC-Source': { $ref: '#/components/headers/Source' },
      'X-SVC-Request-Id': { $ref: '#/components/headers/RequestId' },
    },
    content: { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } },
  };
}
