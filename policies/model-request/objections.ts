import type { SharedObject } from '../../core/dialects/dialect';
import { fail, type GatewayError } from '../../core/errors';

/** Returns the error for an object that the vendor keeps for the platform's account. Without it, every customer could name the object. */
export function notShared(names: SharedObject, param: string): GatewayError {
  return notSupported(
    param,
    `"${names}" names an object at the vendor that belongs to no account, and this gateway does not share such objects (\`sharedObjects\`).`,
  );
}

/** Returns the error for a tier, speed or region in a form that no price can have. */
export function notPriced(name: string): GatewayError {
  return fail('MODEL_NOT_PRICED', {
    param: name,
    message: `The configuration has no price for what "${name}" requests.`,
  });
}

export function notSupported(param: string, message: string): GatewayError {
  return fail('NOT_SUPPORTED', { param, message, status: 400 });
}
