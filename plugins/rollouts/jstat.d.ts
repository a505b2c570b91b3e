declare module 'jstat' {
  export const jStat: {
    /** ln Γ(x). */
    gammaln(x: number): number;
    /** ln B(a, b). */
    betaln(a: number, b: number): number;
    /** The regularised incomplete beta function. */
    ibeta(x: number, a: number, b: number): number;
  };
}
