/** The start cannot continue, and an operator must act. The message says what is wrong, where, and the remedy. Exit status 78. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
}

/** The exit status of a configuration error, as in sysexits.h. */
export const EXIT_CONFIGURATION = 78;
