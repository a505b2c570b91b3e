import 'tollgate/policy';

declare module 'tollgate/policy' {
  interface CallFields {
    /** The configured words that the policy example-policy found in the call. */
    wordsFound: readonly string[];
  }
}
