import 'tollgate/policy';

declare module 'tollgate/policy' {
  interface CallFields {
    /** example-policy: the words of its settings that occur in the call. */
    wordsFound: readonly string[];
  }
}
