import { expect } from 'chai';
import * as fc from 'fast-check';
import { decideNext, type JudgedFailure, type RetryDecision, type Situation } from '../../../policies/failover/decide';

const failed = (rest: Partial<JudgedFailure> = {}): JudgedFailure => ({
  outcome: 'status',
  status: 500,
  verdict: 'next',
  retryAfterMs: undefined,
  ...rest,
});
const at = (rest: Partial<Situation> = {}): Situation => ({
  attemptsLeft: 3,
  candidatesLeft: 1,
  isNextHealthy: true,
  doesNextMostlyAnswer: true,
  retriesLeft: 1,
  budgetLeft: true,
  ...rest,
});
const alone = at({ candidatesLeft: 0 });

const next: RetryDecision = { do: 'next', why: 'another candidate can answer', spends: false };
const outage = at({ isNextHealthy: false, doesNextMostlyAnswer: false });
const retry = (afterMs = 100): RetryDecision => ({ do: 'retry', why: 'no other candidate is left', afterMs });
const giveUp = (why: string): RetryDecision => ({ do: 'give-up', why });
const relay = (why: string): RetryDecision => ({ do: 'relay', why });

const requestsFault = relay('the request is invalid: every upstream would reject it');
const noAttempts = giveUp('no further attempts are allowed');
const sameAnswer = giveUp('the same upstream would give the same answer');

const TABLE: readonly (readonly [what: string, JudgedFailure, Situation, RetryDecision])[] = [
  [
    'asks nobody else while an upstream still works that cannot be stopped',
    failed({ outcome: 'timeout', status: undefined, stillWorks: true }),
    at(),
    giveUp('the upstream still works for the call and cannot be stopped'),
  ],
  ['relays a failure that the request caused', failed({ status: 400, verdict: 'relay' }), at(), requestsFault],
  [
    'gives up when the client has disconnected',
    failed({ outcome: 'cancelled' }),
    at(),
    giveUp('the client has disconnected'),
  ],
  ['gives up after the last attempt', failed(), at({ attemptsLeft: 0 }), noAttempts],
  ['tries the next candidate after a 500', failed(), at(), next],
  ['tries the next candidate after a 429, without waiting', failed({ status: 429, retryAfterMs: 60_000 }), at(), next],
  ['tries the next candidate after a timeout', failed({ outcome: 'timeout', status: undefined }), at(), next],
  [
    'tries a candidate with a larger context when the context was too small',
    failed({ status: 400, verdict: 'larger-context' }),
    at(),
    next,
  ],
  [
    'relays the error when no candidate has a context large enough',
    failed({ status: 400, verdict: 'larger-context' }),
    alone,
    relay('no candidate has a larger context'),
  ],
  [
    'does not retry a candidate that timed out',
    failed({ outcome: 'timeout', status: undefined }),
    alone,
    giveUp('an upstream that did not answer is not retried'),
  ],
  ['retries a reset when no other candidate is left', failed({ outcome: 'reset', status: undefined }), alone, retry()],
  [
    'gives up when the retries are used up',
    failed(),
    { ...alone, retriesLeft: 0 },
    giveUp('the last candidate has had its retries'),
  ],
  ...[408, 425, 429, 500, 502, 503, 504, 529].map(
    (status) => [`retries a ${status} when no other candidate is left`, failed({ status }), alone, retry()] as const,
  ),
  ...[401, 402, 403, 404, 409].map(
    (status) => [`does not retry a ${status} at the same upstream`, failed({ status }), alone, sameAnswer] as const,
  ),
  [
    'uses the budget when the next candidate has failed lately',
    failed(),
    outage,
    { do: 'next', why: 'another candidate may have recovered', spends: true },
  ],
  [
    'gives up during an outage when the budget is used up',
    failed(),
    { ...outage, budgetLeft: false },
    giveUp('the remaining candidates failed recently, and the retry budget is used up'),
  ],
  [
    'tries a candidate that answers most calls even if the budget is used up',
    failed(),
    at({ isNextHealthy: false, budgetLeft: false }),
    { do: 'next', why: 'another candidate answers most calls', spends: false },
  ],
  ['tries a healthy candidate whatever the budget', failed(), at({ budgetLeft: false }), next],
  ['does not retry without budget', failed(), { ...alone, budgetLeft: false }, giveUp('the retry budget is used up')],
  ['waits as long as Retry-After says', failed({ status: 429, retryAfterMs: 1_500 }), alone, retry(1_500)],
  [
    'gives up when Retry-After is longer',
    failed({ status: 429, retryAfterMs: 2_001 }),
    alone,
    giveUp('the upstream asks for a longer wait than a caller should bear'),
  ],
];

describe('the decision after a failed attempt', () => {
  for (const [what, failure, situation, decision] of TABLE)
    it(what, () => expect(decideNext(failure, situation)).to.deep.equal(decision));

  it('allows no attempt when none is left, waits at most two seconds, and never exceeds the retry budget', () => {
    const failure = fc.record<JudgedFailure>({
      outcome: fc.constantFrom('connect_failed', 'timeout', 'reset', 'status', 'error_event', 'cancelled'),
      status: fc.option(fc.integer({ min: 200, max: 599 }), { nil: undefined }),
      verdict: fc.constantFrom('next', 'relay', 'larger-context'),
      retryAfterMs: fc.option(fc.integer({ min: 0, max: 10_000 }), { nil: undefined }),
    });
    const situation = fc.record<Situation>({
      attemptsLeft: fc.nat(5),
      candidatesLeft: fc.nat(3),
      isNextHealthy: fc.boolean(),
      doesNextMostlyAnswer: fc.boolean(),
      retriesLeft: fc.nat(2),
      budgetLeft: fc.boolean(),
    });
    void fc.assert(
      fc.property(failure, situation, (one, where) => {
        const decision = decideNext(one, where);
        if (where.attemptsLeft === 0) expect(decision.do).to.be.oneOf(['relay', 'give-up']);
        if (decision.do === 'next') expect(where.candidatesLeft).to.be.greaterThan(0);
        if (decision.do === 'retry') {
          expect(decision.afterMs).to.be.within(0, 2_000);
          expect(where.retriesLeft).to.be.greaterThan(0);
          expect(where.budgetLeft).to.equal(true);
        }
        if (decision.do === 'next' && !where.budgetLeft) expect(decision.spends).to.equal(false);
        if (one.outcome === 'cancelled') expect(decision.do).to.be.oneOf(['relay', 'give-up']);
      }),
      { numRuns: 2_000 },
    );
  });
});
