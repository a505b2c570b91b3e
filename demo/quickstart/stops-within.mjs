/** How long a program of the quick start may take to stop before it is killed. */
export const STOPS_WITHIN_MS = 30_000;
