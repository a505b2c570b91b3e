import { expect } from 'chai';
import { Pool } from 'undici';
import type { Candidate, Tier } from '../../../core/catalog/catalog';
import type { Gateway } from '../../../core/gateway/gateway';
import { UpstreamHealth } from '../../../core/health/health';
import { type AskingCall, Attempts } from '../../../policies/failover/attempts';
import { RetryBudget } from '../../../policies/failover/retry-budget';
import { type CandidateSet, choose, openCandidateSet } from '../../../policies/strategy-routing/choose';
import { byQuality } from '../../../policies/strategy-routing/strategies/quality';
import { sampleCandidate } from '../../support/catalog-samples';
import { sampleModelRequest } from '../../support/request-sample';
import { messagesAnswer, startUpstream, type TestUpstream } from '../../support/upstream';

/** Returns whether an upstream answers the call of this number. Otherwise it refuses the connection. */
type Answers = (call: number) => boolean;

interface Story {
  readonly upstreams: Readonly<Record<string, { readonly tier: Tier; readonly answers: Answers }>>;
  readonly calls: number;
  readonly callsPerSecond: number;
  /** Whether other calls of the process have used up the budget for further attempts. */
  readonly isBudgetSpent?: boolean;
}

interface Told {
  /** Numbers of the calls that no upstream answered. */
  readonly unanswered: readonly number[];
  readonly attempts: number;
}

const SETTINGS = { maxAttempts: 4, sameUpstreamRetries: 0, preambleHoldMs: 15_000 };
const REFUSED = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' });

describe('the attempts of calls', () => {
  let upstream: TestUpstream;
  let pool: Pool;
  before(async () => {
    upstream = await startUpstream();
    upstream.always(messagesAnswer());
    pool = new Pool(upstream.url);
  });
  after(async () => {
    await pool.destroy();
    await upstream.stop();
  });

  /** Routes the calls one after the other, on a simulated clock. */
  async function tell({ upstreams, calls, callsPerSecond, isBudgetSpent = false }: Story): Promise<Told> {
    let nowMs = 1_000_000;
    let attempts = 0;
    let current = 0;
    const egress = {
      pool: ({ name }: { readonly name: string }) => {
        attempts += 1;
        if (upstreams[name]?.answers(current) !== true) throw REFUSED;
        return pool;
      },
    };
    const health = new UpstreamHealth({ now: () => nowMs });
    const budget = new RetryBudget(() => nowMs);
    const gateway = { egress, health, log: { debug: () => undefined } } as unknown as Gateway;
    const candidates = Object.entries(upstreams).map(([name, { tier }]) =>
      sampleCandidate(name, { upstream: { tier } }),
    );
    const set = openCandidateSet(candidates, health);
    const unanswered: number[] = [];
    for (; current < calls; current += 1, nowMs += 1_000 / callsPerSecond) {
      budget.noteCall();
      while (isBudgetSpent && budget.isLeft) budget.spend();
      const made = new Attempts(callTo(ordered(set, health)), SETTINGS, gateway, budget);
      if (!(await isAnswered(made))) unanswered.push(current);
    }
    return { unanswered, attempts };
  }

  const down: Answers = () => false;
  const TRIOS: readonly (readonly [what: string, answers: Answers])[] = [
    ['always answers', () => true],
    ['failed the first call', (call) => call > 0],
    ['fails every tenth call', (call) => call % 10 !== 3],
    ['fails every third call', (call) => call % 3 !== 1],
  ];
  for (const callsPerSecond of [1, 5, 50])
    for (const [what, third] of TRIOS)
      it(`reach the one good upstream of three when it ${what}, at ${callsPerSecond} calls a second`, async () => {
        const { unanswered } = await tell({
          upstreams: {
            first: { tier: 'official', answers: down },
            second: { tier: 'official', answers: down },
            third: { tier: 'standard', answers: third },
          },
          calls: 100,
          callsPerSecond,
        });
        expect(unanswered.filter(third)).to.deep.equal([]);
      });

  it('reach the good upstream of three that fails every tenth call, when other calls have used up the budget', async () => {
    const third: Answers = (call) => call % 10 !== 3;
    const { unanswered } = await tell({
      upstreams: {
        first: { tier: 'official', answers: down },
        second: { tier: 'official', answers: down },
        third: { tier: 'standard', answers: third },
      },
      calls: 100,
      callsPerSecond: 5,
      isBudgetSpent: true,
    });
    expect(unanswered.filter(third)).to.deep.equal([]);
  });

  it('go to a native upstream that mostly answers before a healthy translation, when the budget is used up', async () => {
    const health = new UpstreamHealth();
    const budget = new RetryBudget();
    while (budget.isLeft) budget.spend();
    const [down, native] = [sampleCandidate('down'), sampleCandidate('native')];
    const translated: Candidate = { ...sampleCandidate('translated'), dialect: 'chat' };
    const failure = { outcome: 'reset', status: undefined, verdict: 'next', retryAfterMs: undefined } as const;
    for (let each = 0; each < 20; each += 1) health.answered(native, { accountId: 'account', ms: 1, stream: false });
    health.failed(native, failure, { accountId: 'account', ms: 1, mayEject: true });
    const pool = () => {
      throw REFUSED;
    };
    const gateway = { egress: { pool }, health, log: { debug: () => undefined } } as unknown as Gateway;
    const made = new Attempts(callTo([down, native, translated]), SETTINGS, gateway, budget);
    const first = made.take() as Candidate;
    const attempted = await made.ask(first, sampleModelRequest());
    const decision = 'failure' in attempted && made.decide(attempted.failure, first);
    if (decision === false || decision.do !== 'next') throw new Error('no further candidate is asked');
    expect((await made.goOn(decision, first)).upstream.name).to.equal('native');
  });

  it('are at most 1.2 a call when all upstreams fail, at 200 calls a second', async () => {
    const names = ['first', 'second', 'third', 'fourth'];
    const upstreams = Object.fromEntries(names.map((name) => [name, { tier: 'standard', answers: down } as const]));
    const { attempts } = await tell({ upstreams, calls: 4_000, callsPerSecond: 200 });
    expect(attempts).to.be.within(4_000, 4_000 * 1.2);
  });

  it('are at most 1.5 a call when all upstreams fail half of their calls, at 200 calls a second', async () => {
    const half =
      (offset: number): Answers =>
      (call) =>
        (call * 2_654_435_761 + offset * 40_503) % 65_536 < 32_768;
    const names = ['first', 'second', 'third', 'fourth'];
    const upstreams = Object.fromEntries(
      names.map((name, at) => [name, { tier: 'standard', answers: half(at * 7_919) } as const]),
    );
    const { attempts } = await tell({ upstreams, calls: 4_000, callsPerSecond: 200 });
    expect(attempts).to.be.within(4_000, 4_000 * 1.5);
  });
});

/** Returns the candidates in the order of `strategy-routing`. */
function ordered(set: CandidateSet, health: UpstreamHealth): readonly Candidate[] {
  const { order, asks } = choose(set, {
    strategy: byQuality,
    asked: { request: sampleModelRequest(), outputTokens: undefined, inputShare: 1, sessionReadShare: 0 },
    kind: 'whole',
    nowMs: health.now(),
    session: undefined,
  });
  if (asks !== undefined) health.asked(asks);
  return order.map((index) => set.candidates[index] as Candidate);
}

function callTo(candidates: readonly Candidate[]): AskingCall {
  const facts = { attempts: 0, made: [], routing: { attempts: [] } };
  const paying = {
    key: { accountId: 'account' },
    request: { stream: false },
    reservation: { onClientAbort: 'settle' },
  };
  const staying = { hasLeft: false, leftAtMs: undefined, onLeave: () => () => undefined };
  return { id: 'req', facts, ...staying, ...paying, candidates } as unknown as AskingCall;
}

async function isAnswered(attempts: Attempts): Promise<boolean> {
  for (let candidate = attempts.take(); candidate !== undefined; ) {
    const attempted = await attempts.ask(candidate, sampleModelRequest());
    if ('answer' in attempted) return true;
    const decision = attempts.decide(attempted.failure, candidate);
    if (decision.do !== 'next' && decision.do !== 'retry') return false;
    candidate = await attempts.goOn(decision, candidate);
  }
  return false;
}
