import type { Knex } from 'knex';
import { formatUsd, parseUsd } from '../../core/base/money';
import { until } from '../../test/support/until';
import { type Called, type Charged, type Comparison, compareCharges } from '../answered-calls';
import { BODY_OF_256, CHAT_PATH } from '../bodies';
import { childPids, pause } from '../measure';
import { startUpstreamNginx } from '../nginx';
import type { Program, Rig } from '../rig';
import { attempt, type Scenario, type Settings } from '../scenario';
import { CREDIT_USD, KEYS, type RunningTollgate, runTollgate } from '../subjects/tollgate';
import type { Failed, Metrics, Round } from '../table';
import { patientDatabase } from '../usage-records';
import { LIMITS } from './governed';

/** How long the bench waits until Postgres has all charges, in ms. Charges from expired holds and from settlements that a process retries arrive last. */
const ARRIVES_WITHIN_MS = 120_000;
/** How long the bench waits for a wrong second charge, in ms. Every 5 s, a process retries unsent settlements that are older than 10 s. */
const SPOOL_MS = 16_000;

/** Compares, after each kill, the answers that clients received with the charges in the stores, to 1e-8 USD. */
export const kill: Scenario = {
  name: 'kill',
  summary: 'kill -9 of a worker, a node, Redis under the load of governed; then the charges beside the answers',
  includes: () => false,
  defaults: { rounds: 3, seconds: 10, connections: 32 },
  layout: ({ seconds, connections }) => ({
    columns: [
      { key: 'answered', title: 'calls answered', digits: 0 },
      { key: 'cut', title: 'calls cut', digits: 0 },
      { key: 'refused', title: 'calls refused', digits: 0 },
      { key: 'answeredUsd', title: 'Σ answered USD', digits: 8 },
      { key: 'chargedUsd', title: 'Σ charged USD', digits: 8 },
      { key: 'chargedCut', title: 'cut calls charged', digits: 0 },
      { key: 'chargedCutUsd', title: 'Σ of those USD', digits: 8 },
      { key: 'differenceUsd', title: 'difference USD', digits: 8 },
    ],
    targets: [],
    notes: [
      `${connections} clients with ${KEYS.accounts * KEYS.keysOfEach} keys call for ${seconds} s; half-way the process is killed and started again. Redis syncs every second.`,
      'Σ answered adds up X-AI-Cost, Σ charged the ledger entries in Postgres. Difference is charged less answered less cut calls charged.',
      'A round fails unless each answered call is charged exactly once and as answered, each cut one at most once, and no refused one;',
      'and unless ledger entries, usage records and what is missing from the balances are the same sum.',
    ],
  }),
  run: async (rig, _subjects, settings) => {
    const unavailable: Record<string, string> = {};
    const rounds: Round[] = [];
    for (let round = 0; round < settings.rounds; round += 1) {
      const metrics: Record<string, Round[string]> = {};
      for (const [name, fault] of Object.entries(FAULTS)) {
        if (unavailable[name] !== undefined) continue;
        const result = await attempt(rig, () => measure(rig, fault, settings));
        if ('value' in result) metrics[name] = result.value;
        else if (result.isUnavailable) unavailable[name] = result.failure;
        else metrics[name] = { failed: result.failure };
        rig.options.progress(`round ${round + 1}/${settings.rounds} ${name}: done`);
      }
      rounds.push(metrics);
    }
    return { rounds, unavailable, versions: {} };
  },
};

interface Fault {
  readonly workers?: number;
  /** Causes a fault and restarts the killed part, so that everything runs again afterwards. */
  harm(tollgate: RunningTollgate): Promise<void>;
}

const FAULTS: Readonly<Record<string, Fault>> = {
  worker: {
    workers: 2,
    harm: async ({ program: { pid } }) => {
      const [worker, ...others] = childPids(pid);
      if (worker === undefined) throw new Error('the gateway has no worker process to kill');
      process.kill(worker, 'SIGKILL');
      await until('another worker is there', () => {
        const now = childPids(pid);
        return !now.includes(worker) && now.length > others.length;
      });
    },
  },
  node: {
    harm: async ({ program, restart }) => {
      await killAll(program);
      await restart();
    },
  },
  Redis: {
    harm: async ({ redis }) => {
      await redis.kill();
      await pause(500);
      await redis.start();
    },
  },
};

/** Kills the gateway's process and its workers, if it has any. */
async function killAll({ pid, child }: Program): Promise<void> {
  const ended = new Promise((done) => child.once('exit', done));
  for (const each of [pid, ...childPids(pid)]) process.kill(each, 'SIGKILL');
  await ended;
}

async function measure(parent: Rig, { workers, harm }: Fault, settings: Settings): Promise<Metrics | Failed> {
  const rig = parent.scope();
  try {
    const upstream = await startUpstreamNginx(rig);
    const tollgate = await runTollgate(rig, {
      upstreamUrl: upstream.url,
      fastLane: true,
      callers: KEYS,
      limits: LIMITS,
      ...(workers !== undefined && { workers }),
    });
    const called = await callWhile(rig, tollgate, settings, () => harm(tollgate));
    const database = patientDatabase(tollgate.databaseUrl);
    rig.onStop(() => database.destroy());
    const compared = await compareInTheEnd(called, tollgate, database);
    const measured = {
      answered: called.answered.size,
      cut: called.cut,
      refused: called.refused.size,
      answeredUsd: usd(compared.answeredE8),
      chargedUsd: usd(compared.chargedE8),
      chargedCut: compared.chargedCut,
      chargedCutUsd: usd(compared.chargedCutE8),
      differenceUsd: usd(compared.differenceE8),
    };
    return compared.wrong.length === 0 ? measured : { failed: describe(compared), measured };
  } finally {
    await rig.stop();
  }
}

async function callWhile(
  rig: Rig,
  { url, customers }: RunningTollgate,
  { connections, seconds }: Settings,
  harm: () => Promise<void>,
): Promise<Called> {
  const keys = customers.map(({ key }) => key);
  const wanted = { url: url + CHAT_PATH, body: BODY_OF_256, keys, clients: connections };
  const clients = await rig.program('calling-clients.mjs', { env: { CALLING_CLIENTS: JSON.stringify(wanted) } });
  await pause(seconds * 500);
  await harm();
  await pause(seconds * 500);
  clients.child.send({});
  const { answered, refused, cut } = await clients.message<Noted>('called', 60_000);
  return {
    answered: new Map(answered.map(([id, cost]) => [id, parseUsd(cost)])),
    refused: new Set(refused.map(([id]) => id)),
    cut,
  };
}

interface Noted {
  readonly answered: readonly (readonly [string, string])[];
  readonly refused: readonly (readonly [string, number])[];
  readonly cut: number;
}

/** Compares answers with charges once all charges are in Postgres, and again after a wrong second charge would have appeared. */
async function compareInTheEnd(called: Called, tollgate: RunningTollgate, database: Knex): Promise<Comparison> {
  const compare = async () => compareCharges(called, await readCharges(tollgate, database));
  const deadline = Date.now() + ARRIVES_WITHIN_MS;
  for (let compared = await compare(); compared.wrong.length > 0; compared = await compare()) {
    if (Date.now() > deadline) return compared;
    await pause(1_000);
  }
  await pause(SPOOL_MS);
  return compare();
}

async function readCharges({ url, customers }: RunningTollgate, database: Knex): Promise<Charged> {
  const records: { requestId: string; cost: string }[] = await database('usage_records').select(
    'request_id as requestId',
    database.raw('cost_e8::text AS cost'),
  );
  const { rows } = await database.raw<{ rows: { sum: string }[] }>(
    "SELECT coalesce(-sum(amount_e8), 0)::text AS sum FROM ledger_entries WHERE kind <> 'credit'",
  );
  const keyOfEach = new Map(customers.map(({ accountId, key }) => [accountId, key]));
  const balances = await Promise.all([...keyOfEach.values()].map((key) => readBalance(url, key)));
  return {
    records: records.map(({ requestId, cost }) => ({ requestId, costE8: BigInt(cost) })),
    entriesE8: BigInt(rows[0]?.sum ?? 0),
    spentE8: balances.reduce((spent, balanceE8) => spent + parseUsd(CREDIT_USD) - balanceE8, 0n),
  };
}

/** Reads a balance. Retries while the gateway compares the ledger with Postgres. */
function readBalance(url: string, key: string): Promise<bigint> {
  return until(
    'the balance is known',
    async () => {
      const response = await fetch(`${url}/v1/balance`, { headers: { 'x-api-key': key } });
      return response.ok ? parseUsd(((await response.json()) as { balanceUsd: string }).balanceUsd) : undefined;
    },
    ARRIVES_WITHIN_MS,
  );
}

function describe({ answeredE8, chargedE8, wrong }: Comparison): string {
  return `answered ${formatUsd(answeredE8)}, charged ${formatUsd(chargedE8)}: ${wrong.join('; ')}`;
}

function usd(amountE8: bigint): number {
  return Number(amountE8) / 1e8;
}
