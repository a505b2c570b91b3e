import { Agent, request } from 'node:http';
import { largeBody } from '../bodies';
import { type FreshRound, runFreshRounds } from '../fresh-rounds';
import { cpuSeconds, peakResidentBytes, quiet, resetPeak, residentBytes } from '../measure';
import { LOOP_PROBE } from '../rig';
import type { Scenario } from '../scenario';
import { type Metrics, spreadOf } from '../table';

/** Sends the largest accepted bodies, one after the other. */
export const body: Scenario = {
  name: 'body',
  summary: 'time, memory and the longest block of the event loop with bodies of 20 MB',
  includes: ({ streams }) => streams,
  defaults: { rounds: 5, calls: 5, bodyBytes: 20_000_000 },
  layout: ({ bodyBytes }) => ({
    columns: [
      { key: 'callMs', title: 'ms/call', digits: 0 },
      { key: 'times', title: '× undici-relay', digits: 2, of: 'callMs', against: 'undici-relay', how: 'ratio' },
      { key: 'firstCallMs', title: 'first ms', digits: 0 },
      { key: 'memoryMb', title: 'memory MB', digits: 0 },
      { key: 'memoryBodies', title: 'in bodies', digits: 2 },
      { key: 'cpuMs', title: 'CPU ms/call', digits: 0 },
      { key: 'blockedMs', title: 'loop blocked max ms', digits: 1 },
      { key: 'blockedP99Ms', title: 'p99 ms', digits: 1 },
    ],
    targets: [
      { what: "≤ 1.2 × the bare relay's time", subject: 'tollgate', column: 'times', atMost: 1.2 },
      { what: '≤ 2.5 × the body in memory', subject: 'tollgate', column: 'memoryBodies', atMost: 2.5 },
      { what: 'never blocks its event loop over 50 ms', subject: 'tollgate', column: 'blockedMs', atMost: 50 },
    ],
    notes: [
      `Bodies of ${bodyBytes} bytes, one at a time, over one connection. The upstream reads all of a body before it answers.`,
      'Memory is the highest resident memory during the calls less that before the first of them, after 200 small calls.',
      'The event loop is watched inside the process by perf_hooks.monitorEventLoopDelay, preloaded.',
    ],
  }),
  run: (rig, subjects, { rounds, calls, bodyBytes }) => {
    const bytes = largeBody(bodyBytes);
    const fresh = { nodeArgs: ['--require', LOOP_PROBE] };
    return runFreshRounds(rig, subjects, rounds, fresh, (round) => measure(round, bytes, calls));
  },
};

async function measure({ running }: FreshRound, bytes: Buffer, calls: number): Promise<Metrics> {
  await quiet(running.pids);
  const before = { resident: residentBytes(running.pids), cpu: cpuSeconds(running.pids) };
  resetPeak(running.pids);
  running.program?.child.send('loop:start');
  const [firstCallMs = 0, ...nextMs] = await post(running.url, running.headers, bytes, calls);
  running.program?.child.send('loop:stop');
  const loop = await running.program?.message<{ maxMs: number; p99Ms: number }>('loop');
  const memory = peakResidentBytes(running.pids) - before.resident;
  return {
    callMs: spreadOf(nextMs)?.median ?? firstCallMs,
    firstCallMs,
    memoryMb: memory / 1e6,
    memoryBodies: memory / bytes.length,
    cpuMs: ((cpuSeconds(running.pids) - before.cpu) / calls) * 1e3,
    ...(loop !== undefined && { blockedMs: loop.maxMs, blockedP99Ms: loop.p99Ms }),
  };
}

async function post(
  url: string,
  headers: Readonly<Record<string, string>>,
  body: Buffer,
  calls: number,
): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const times: number[] = [];
  try {
    while (times.length < calls) {
      const started = performance.now();
      await postOnce(url, headers, body, agent);
      times.push(performance.now() - started);
    }
  } finally {
    agent.destroy();
  }
  return times;
}

function postOnce(url: string, headers: Readonly<Record<string, string>>, body: Buffer, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const all = { 'content-type': 'application/json', 'content-length': body.length, ...headers };
    const call = request(url, { method: 'POST', headers: all, agent, timeout: 60_000 });
    call.on('timeout', () => call.destroy(new Error('the measured program sent no response within 60 s')));
    call.on('error', reject);
    call.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => (text += chunk));
      response.on('error', reject);
      response.on('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`the measured program responded with ${response.statusCode}: ${text.slice(0, 300)}`));
      });
    });
    call.end(body);
  });
}
