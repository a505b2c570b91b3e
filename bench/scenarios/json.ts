import type { Scenario } from '../scenario';
import { ratio } from '../table';
import { runWrkRounds } from '../wrk-rounds';

/** Measures calls per second through the whole pipeline, with many clients and small bodies. */
export const json: Scenario = {
  name: 'json',
  summary: 'calls per second with 32 connections, small JSON bodies',
  includes: () => true,
  defaults: { rounds: 5, seconds: 5, warmupSeconds: 10, connections: 32 },
  layout: () => ({
    columns: [
      { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
      ratio('callsPerSecond', 'direct', '× direct', 3),
      ratio('callsPerSecond', 'undici-relay', '× undici-relay', 3),
      ratio('callsPerSecond', 'billed-relay', '× billed-relay', 3),
      ratio('callsPerSecond', 'portkey', '× portkey', 1),
      { key: 'p50Ms', title: 'p50 ms', digits: 2 },
      { key: 'p99Ms', title: 'p99 ms', digits: 2 },
      { key: 'cpuMicros', title: 'CPU µs/call', digits: 0 },
      ratio('cpuMicros', 'tollgate', 'CPU × tollgate'),
      { key: 'storeMicros', title: 'stores µs/call', digits: 0 },
      { key: 'peakMb', title: 'peak MB', digits: 0 },
      ratio('peakMb', 'billed-relay', 'peak × billed-relay'),
    ],
    targets: [
      { what: '≥ 0.8 × billed-relay', subject: 'tollgate', column: 'callsPerSecond/billed-relay', atLeast: 0.8 },
      { what: '≥ 0.35 × undici-relay', subject: 'tollgate', column: 'callsPerSecond/undici-relay', atLeast: 0.35 },
      { what: '≥ 8 × portkey', subject: 'tollgate', column: 'callsPerSecond/portkey', atLeast: 8 },
      { what: "peak memory ≤ 1.3 × billed-relay's", subject: 'tollgate', column: 'peakMb/billed-relay', atMost: 1.3 },
    ],
    notes: [
      'CPU is of the subject alone, user and system, and includes what it finishes after the last answer (usage records).',
      'Stores are Redis and Postgres together. Peak memory is of the subject since its start.',
      'Load, upstream, subject and stores share the cores of this machine.',
    ],
  }),
  run: runWrkRounds,
};
