import type { SharedObject } from '../../core/dialects/dialect';
import { fail, type GatewayError } from '../../core/errors';

/** Refuses a request that names something which the vendor keeps for the platform's account, where every customer could name it. */
export function notShared(names: SharedObject, param: string): GatewayError {
  return notSupported(
    param,
    `"${names}" names something that is kept at the vendor. It is not bound to accounts, and this gateway does not share it (\`sharedObjects\`).`,
  );
}

export function notSupported(param: string, message: string): GatewayError {
  return fail('NOT_SUPPORTED', { param, message, status: 400 });
}

export function notPriced(name: string): GatewayError {
  return fail('MODEL_NOT_PRICED', { param: name, message: `There is no price here for what "${name}" asks.` });
}
