/** The start cannot go on, and a person has to do something: what, where, and the remedy. Exit status 78. */
export class StartFailure extends Error {
  override readonly name = 'StartFailure';
}

/** sysexits' "configuration error". */
export const EXIT_CONFIGURATION = 78;
