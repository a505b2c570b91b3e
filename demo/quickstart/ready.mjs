import { setTimeout as sleep } from 'node:timers/promises';

const WITHIN_MS = 60_000;
const ASK_EVERY_MS = 100;
const SAY_EVERY_MS = 2_000;

/** Waits until the address answers 200, and prints now and then what it waits for. */
export async function untilReady(name, url, say) {
  const began = Date.now();
  let said = began;
  for (;;) {
    const answer = await ask(url);
    if (answer === 200) return;
    const now = Date.now();
    if (now - began > WITHIN_MS)
      throw new Error(`${name} was not ready within ${WITHIN_MS / 1000} s (${url}: ${answer}).`);
    if (now - said >= SAY_EVERY_MS) {
      say(`  waiting for ${name} (${Math.round((now - began) / 1000)} s, ${answer}) …`);
      said = now;
    }
    await sleep(ASK_EVERY_MS);
  }
}

async function ask(url) {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) });
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return 'no answer yet';
  }
}
