import type { IncomingMessage } from 'node:http';
import { type ErrorCode, fail, GatewayError } from '../../../core/errors';
import type { BodyOwner } from '../../../core/http/buffered-bytes';
import { largeJsonBody } from '../../../core/http/http';
import type { Schema } from '../../../core/settings';

interface BodyOptions {
  readonly maxBytes: number;
  /** The error code for an invalid field. */
  readonly invalid?: ErrorCode;
  /** The error code for a body that is too large. */
  readonly tooLarge?: ErrorCode;
}

/** Reads a JSON body. Its errors have the codes of the sandbox endpoints. */
export function readBody<T>(schema: Schema, { maxBytes, invalid, tooLarge }: BodyOptions) {
  const read = largeJsonBody<T>(schema, maxBytes);
  return async (request: IncomingMessage, owner: BodyOwner): Promise<T> => {
    try {
      return await read(request, owner);
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      if (error.code === 'INVALID_FIELD' && invalid !== undefined) throw fail(invalid, withMessage(error));
      if (error.code === 'BODY_TOO_LARGE' && tooLarge !== undefined) throw fail(tooLarge, withMessage(error));
      throw error;
    }
  };
}

function withMessage({ options, message }: GatewayError) {
  return { ...options, message };
}
