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
