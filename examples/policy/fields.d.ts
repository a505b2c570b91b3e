import 'tollgate/policy';

declare module 'tollgate/policy' {
  interface CallFields {
    /** example-policy: the words of its settings that the call names. */
    wordsFound: readonly string[];
  }
}
