import type { Scenario } from '../scenario';
import { body } from './body';
import { console } from './console';
import { json } from './json';
import { latency } from './latency';
import { ledger } from './ledger';
import { parts } from './parts';
import { rollout } from './rollout';
import { routing } from './routing';
import { sandbox } from './sandbox';
import { stream } from './stream';
import { usage } from './usage';

export const SCENARIOS: readonly Scenario[] = [
  json,
  latency,
  body,
  ledger,
  parts,
  stream,
  routing,
  rollout,
  usage,
  console,
  sandbox,
];
