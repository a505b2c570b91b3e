/** Mutants that no test can tell from the script, and why. */
export const EQUIVALENT: readonly { readonly script: string; readonly change: string; readonly why: string }[] = [
  {
    script: 'settle',
    change: 'boundary: > in if cost > hold then',
    why: 'A cost that is the hold takes 0 more, whatever is available: both ways charge the hold.',
  },
];
