/** `tollgate/errors`: the errors that clients are told of. */
export { ERRORS, type ErrorCode, type ErrorOptions, fail, GatewayError } from '../core/errors';
