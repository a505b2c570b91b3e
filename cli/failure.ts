/** An error with its next step, for the operator. Exit status 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

/** An error with which the gateway rejected the request: nothing was changed. */
export class Refusal extends Failure {
  constructor(
    message: string,
    readonly code: string,
    readonly details: object,
  ) {
    super(message);
  }
}

/** An error in how the command was written. Exit status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Reports that a child program has ended. It has already printed its own messages, so only its exit status remains. */
export class Ended extends Error {
  override readonly name = 'Ended';

  constructor(readonly status: number) {
    super(`ended with status ${status}`);
  }
}
