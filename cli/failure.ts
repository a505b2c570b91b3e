/** What went wrong, for people, with the next step. Exit status 1. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

/** The gateway has refused it, and so nothing was done. */
export class Refusal extends Failure {
  constructor(
    message: string,
    readonly code: string,
    readonly details: object,
  ) {
    super(message);
  }
}

/** The command was written wrongly. Exit status 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A program that this one ran has ended, and said itself what there was to say. */
export class Ended extends Error {
  override readonly name = 'Ended';

  constructor(readonly status: number) {
    super(`ended with status ${status}`);
  }
}
