/** `tollgate/errors`: the errors that clients are told of. */
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
