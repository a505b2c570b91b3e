/** `tollgate/errors`: the errors that the gateway returns to clients. */
export {
  type DeclaredCode,
  type DeclaredErrors,
  declareErrors,
  ERRORS,
  type ErrorCode,
  type ErrorKind,
  type ErrorOptions,
  fail,
  GatewayError,
} from '../core/base/errors';
