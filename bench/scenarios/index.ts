import type { Scenario } from '../scenario';
import { accounts } from './accounts';
import { agents } from './agents';
import { body } from './body';
import { console } from './console';
import { governed } from './governed';
import { idle } from './idle';
import { json } from './json';
import { kill } from './kill';
import { latency } from './latency';
import { ledger } from './ledger';
import { observed } from './observed';
import { records } from './records';
import { rollout } from './rollout';
import { routing } from './routing';
import { sandbox } from './sandbox';
import { start } from './start';
import { stream } from './stream';
import { usage } from './usage';
import { workers } from './workers';

export const SCENARIOS: readonly Scenario[] = [
  agents,
  json,
  latency,
  body,
  ledger,
  records,
  stream,
  routing,
  rollout,
  usage,
  console,
  sandbox,
  governed,
  kill,
  accounts,
  workers,
  observed,
  idle,
  start,
];
