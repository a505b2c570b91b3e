/** Mutants that no test can tell from the script, and why. */
export const EQUIVALENT: readonly { readonly script: string; readonly change: string; readonly why: string }[] = [];
