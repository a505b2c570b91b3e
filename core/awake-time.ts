/** How often the process looks at the clock. */
const LOOK_MS = 250;
/** The most time between two looks that counts. A longer gap is a stall of the event loop, in which nothing that arrives is seen. */
const BETWEEN_LOOKS_AT_MOST_MS = 2 * LOOK_MS;

let seenMs = 0;
let awakeForMs = 0;
let timer: NodeJS.Timeout | undefined;

/** Returns a clock in milliseconds that advances only while the event loop runs. It measures waiting times without stalls of the process. */
export function awakeMs(): number {
  const nowMs = performance.now();
  if (timer === undefined) timer = setInterval(awakeMs, LOOK_MS).unref();
  else awakeForMs += Math.min(nowMs - seenMs, BETWEEN_LOOKS_AT_MOST_MS);
  seenMs = nowMs;
  return awakeForMs;
}
