import { freePort } from '../support/free-port';
import { settlesWithin } from '../support/until';
import { type Checkout, outcomeOf, startIn } from './checkout';
import type { RunningWork } from './enclosure';
import { type Printed, readyIn } from './quickstart-output';
import type { Outcome } from './report';

const ANSWERS_WITHIN_MS = 60_000;
const STOPS_WITHIN_MS = 60_000;

/** Starts the quick start, makes one call with the key it prints, and stops it as Ctrl-C does. */
export async function runQuickstart(at: Checkout, signal: AbortSignal): Promise<Outcome> {
  const kill = new AbortController();
  let tell: (printed: Printed) => void = () => undefined;
  const ready = new Promise<Printed>((resolve) => {
    tell = resolve;
  });
  // The network is the machine's, where other programs may have the usual ports.
  const ports = { PORT: await port(), ADMIN_PORT: await port(), DEMO_PORT: await port() };
  const work = await startIn(
    { ...at, env: { ...at.env, ...ports } },
    ['npm', 'run', 'quickstart'],
    AbortSignal.any([signal, kill.signal]),
    (output) => {
      const printed = readyIn(output);
      if (printed !== undefined) tell(printed);
    },
  );
  try {
    return await use(work, ready, signal);
  } finally {
    kill.abort();
    await work.ended;
  }
}

async function use(work: RunningWork, ready: Promise<Printed>, signal: AbortSignal): Promise<Outcome> {
  const first = await Promise.race([ready, work.ended]);
  if ('output' in first) return { failures: [], problem: `ended before it was ready, ${outcomeOf(first).problem}` };
  const problem = await call(first, signal);
  if (problem !== undefined) return { failures: [], problem };
  work.interrupt();
  const hasStopped = await settlesWithin(STOPS_WITHIN_MS, work.ended);
  return { failures: [], ...(hasStopped ? {} : { problem: 'did not end within a minute of Ctrl-C' }) };
}

async function port(): Promise<string> {
  return String(await freePort());
}

/** Makes one call over the Messages protocol. Returns why it was not answered. */
async function call({ url, key }: Printed, signal: AbortSignal): Promise<string | undefined> {
  const body = { model: 'demo-model', max_tokens: 200, messages: [{ role: 'user', content: 'Hello' }] };
  const answer = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWERS_WITHIN_MS)]),
  });
  const text = await answer.text();
  process.stderr.write(`\n${answer.status} ${text}\n`);
  return answer.ok && text.includes('"text"') ? undefined : `a call with the printed key got ${answer.status}: ${text}`;
}
