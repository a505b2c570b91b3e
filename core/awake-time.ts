/** How often the process looks at the clock. */
const LOOK_MS = 250;
/** The most time between two looks that counts. A longer gap is a stall of the event loop, in which nothing that arrives is seen. */
const BETWEEN_LOOKS_AT_MOST_MS = 2 * LOOK_MS;

let seenMs = 0;
let awakeForMs = 0;
let measurements = 0;
let timer: NodeJS.Timeout | undefined;

/**
 * Starts to measure how long the event loop runs. Stalls of the process do not count. Returns a function that ends the
 * measurement and returns its length in milliseconds.
 */
export function measureAwake(): () => number {
  if (timer === undefined) {
    seenMs = performance.now();
    timer = setInterval(look, LOOK_MS).unref();
  } else advance();
  measurements += 1;
  const fromMs = awakeForMs;
  let lengthMs: number | undefined;
  return () => {
    if (lengthMs !== undefined) return lengthMs;
    measurements -= 1;
    advance();
    lengthMs = awakeForMs - fromMs;
    return lengthMs;
  };
}

function look(): void {
  advance();
  if (measurements > 0) return;
  clearInterval(timer);
  timer = undefined;
}

function advance(): void {
  const nowMs = performance.now();
  awakeForMs += Math.min(nowMs - seenMs, BETWEEN_LOOKS_AT_MOST_MS);
  seenMs = nowMs;
}
