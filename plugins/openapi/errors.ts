import { ERRORS, type ErrorCode } from '../../core/errors';
import { object, oneOf, orNull, shape } from '../../core/http/shape';

/** The envelope of docs/contract.md, section 3. */
export const ERROR_SCHEMA = object({
  type: oneOf('error'),
  request_id: shape.text,
  error: object({
    type: shape.text,
    code: { $ref: '#/components/schemas/ErrorCode' },
    message: { type: 'string', description: 'For people; it may change.' },
    param: orNull({ type: 'string', description: 'The field that is at fault.' }),
    details: { type: 'object' },
    retryable: { type: 'boolean', description: 'The same again can succeed.' },
  }),
});

/** Of a model call it can also be an upstream's own, whose status and body are relayed untouched. */
export const CALL_ERROR_SCHEMA = {
  anyOf: [
    { $ref: '#/components/schemas/Error' },
    { type: 'object', description: "An upstream's own, where `X-SVC-Source` is `provider`." },
  ],
};

export const ERROR_CODES = { type: 'string', enum: Object.keys(ERRORS) };

/** The whole catalogue, for programs that decide by code. */
export const ERROR_CATALOGUE = Object.entries(ERRORS).map(([code, kind]) => ({ code, ...kind }));

/**
 * One answer for each status, which says what codes it may carry.
 * @param badRequests codes that are 400 here, whatever the catalogue says
 */
export function errorResponses(
  codes: readonly ErrorCode[],
  schema: 'Error' | 'CallError' = 'Error',
  badRequests: readonly ErrorCode[] = [],
): Record<string, object> {
  const byStatus = new Map<number, ErrorCode[]>(badRequests.length > 0 ? [[400, [...badRequests]]] : []);
  for (const code of new Set(codes))
    byStatus.set(ERRORS[code].status, [...(byStatus.get(ERRORS[code].status) ?? []), code]);
  return Object.fromEntries(
    [...byStatus].map(([status, each]) => [String(status), errorResponse(summaries(each), schema)]),
  );
}

function summaries(codes: readonly ErrorCode[]): string {
  return codes.map((code) => `\`${code}\`: ${ERRORS[code].summary}`).join('\n\n');
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
