/** An error that tells the operator the next step. The program exits with status 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

/** The error of a request that the gateway rejected. The gateway has changed nothing. */
export class Refusal extends Failure {
  constructor(
    message: string,
    readonly code: string,
    readonly details: object,
  ) {
    super(message);
  }
}

/** An error in the command line itself. The program exits with status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** Reports that a child program has ended. The child has already printed its messages, so the CLI only repeats its exit status. */
export class Ended extends Error {
  override readonly name = 'Ended';

  constructor(readonly status: number) {
    super(`ended with status ${status}`);
  }
}
