/** Reports that the process cannot start and that an operator must act. The message says what is wrong, where, and what to do. The exit status is 78. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
}

/** The exit status of a configuration error: `EX_CONFIG` in sysexits.h. */
export const EXIT_CONFIGURATION = 78;
