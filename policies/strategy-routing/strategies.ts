import type { ModelRequest } from '../../core/calls/call';
import { type Candidate, type ModelEntry, TIERS } from '../../core/catalog/catalog';
import type { CandidateFacts } from '../../core/health/gauge';

/** The facts about a call that strategies use to rank candidates. */
export interface RankingQuery {
  readonly request: Pick<ModelRequest, 'inputTokensEstimate' | 'maxOutputTokens' | 'choices'>;
  /** The output tokens of recent answers of this model, per answer; undefined while unknown. */
  readonly outputTokens: number | undefined;
  /** The ratio of real input tokens to estimated input tokens in recent calls. */
  readonly inputShare: number;
  /** The share of input tokens that sessions recently read from caches, from 0 to 1. */
  readonly sessionReadShare: number;
}

/** Defines how a strategy ranks candidates. Its functions are pure. */
export interface Strategy {
  /** Returns the score of a candidate. The gateway tries the candidate with the lowest score first. */
  score(candidate: Candidate, facts: CandidateFacts, asked: RankingQuery): number;
  /** Returns how far the score may be off by chance. Candidates whose scores differ by no more count as equal and share the load by weight. */
  noise(facts: CandidateFacts): number;
}

/** A score behind all others. It is finite, because the usage record stores it as JSON. */
export const LAST = 1e9;

/** The relative difference up to which two measured times of candidates count as equal. */
const SAME_SHARE = 0.2;

/** Returns how far a measured time may be off by chance, relative to the time; 0 if the time is unknown. */
function latencyNoise({ latencyMs, latencyDeviationMs }: CandidateFacts): number {
  return latencyMs === undefined ? 0 : Math.max(SAME_SHARE, latencyDeviationMs / Math.max(1, latencyMs));
}

/**
 * Ranks official upstreams first, then the most reliable, then the fastest. Reliability is compared in five ranges of the failure rate.
 * Times are compared as logarithms. A time less than 1.5 times as long as another counts as equal, so that noise moves no calls.
 */
export const byQuality: Strategy = {
  score: ({ upstream }, facts) =>
    TIERS.indexOf(upstream.tier) * 10_000 + failureClass(facts.failureRate) * 1_000 + latencySteps(facts),
  noise: (facts) => (facts.latencyMs === undefined ? 0 : Math.max(1, stepsDown(latencyNoise(facts)))),
};

/** The minimum share of a measured time that remains after its error by chance is subtracted. After one answer, that error can be nearly the whole time. */
const MIN_LEFT = 0.01;

/**
 * Ranks candidates for the calls of a session, because the session's prompt cache is worth more than a faster upstream. Candidates of one
 * tier are equal, except that a candidate that fails often ranks behind. A single failure moves no session, because the next candidate
 * serves that call.
 */
export const bySessionQuality: Strategy = {
  score: ({ upstream }, { failureRate }) => {
    const failing = failureClass(failureRate);
    return TIERS.indexOf(upstream.tier) * 10_000 + (failing < FAILS_OFTEN ? 0 : failing * 1_000);
  },
  noise: () => 0,
};

/** The failure class from which sessions move: more than 15 % of the attempts failed. */
const FAILS_OFTEN = 2;

/** Returns how many factors of 1.5 lie between a time and the same time reduced by `share`. After one slow answer, `share` is nearly 1. */
function stepsDown(share: number): number {
  return -Math.log(Math.max(MIN_LEFT, 1 - share)) / STEP;
}

/** Returns the class of a failure rate, 0 to 4, with bounds at 5, 15, 40 and 75 %. One failure among answers means class 1 for 15 seconds. */
function failureClass(rate: number): number {
  if (rate <= 0.05) return 0;
  if (rate <= 0.15) return 1;
  if (rate <= 0.4) return 2;
  return rate <= 0.75 ? 3 : 4;
}

const STEP = Math.log(1.5);

/** Returns a time in steps, each 1.5 times as long as the one before. An untried candidate ranks first, one being tried by a call ranks last. */
function latencySteps({ latencyMs, isUntried, isBeingTried }: CandidateFacts): number {
  if (isUntried) return 0;
  if (isBeingTried || latencyMs === undefined) return 999;
  return 1 + Math.log(Math.max(1, latencyMs)) / STEP;
}

/** The lowest success rate that the ranking assumes, because a candidate that rarely answers is not infinitely slow. */
const MIN_SUCCESS = 0.02;

/**
 * Ranks by the shortest expected time to the first token, including the time of failed attempts. An untried candidate ranks first, one that
 * another call is trying ranks last.
 */
export const bySpeed: Strategy = {
  score: (_candidate, facts) => expectedMs(facts),
  noise: (facts) => latencyNoise(facts) * expectedMs(facts),
};

function expectedMs({ latencyMs, failureRate, isUntried }: CandidateFacts): number {
  if (isUntried) return 0;
  return latencyMs === undefined ? LAST : latencyMs / Math.max(MIN_SUCCESS, 1 - failureRate);
}

/**
 * Ranks by the lowest expected price of this call, in E8 (1e-8 USD). The price is a plain number, because it is an estimate that
 * no customer pays.
 */
export const byCost: Strategy = {
  score: (candidate, { cacheReadShare = 0 }, asked) => expectedE8(candidate, asked, cacheReadShare),
  noise: () => 0,
};

/**
 * Ranks calls of a session by price, as if the session stayed at each candidate. The price uses the share of input tokens that sessions at
 * all upstreams recently read from caches. One upstream's own share is unreliable, because each session that moves to the upstream lowers
 * this share. Prices based on the own share would move all sessions back and forth. The own share counts only if it is far below the share
 * of all upstreams.
 */
export const bySessionCost: Strategy = {
  score: (candidate, { sessionReadShare }, asked) =>
    expectedE8(candidate, asked, Math.min(asked.sessionReadShare, sessionReadShare * BELIEVED)),
  noise: () => 0,
};

/** The factor that multiplies one upstream's own share of input read from its cache. The product counts only if it is below the share of all upstreams. */
const BELIEVED = 4;

function expectedE8({ model, rough }: Candidate, asked: RankingQuery, cacheReadShare: number): number {
  const inputTokens = asked.request.inputTokensEstimate * asked.inputShare;
  const price = rough.above !== undefined && inputTokens > rough.above.tokens ? rough.above : rough;
  const inputRate = price.input + (price.cacheRead - price.input) * cacheReadShare;
  return (inputTokens * inputRate + expectedOutputTokens(model, asked) * price.output) / 1e6;
}

/** Returns the expected output tokens: as in recent answers, but at most what the call or the model allows. */
function expectedOutputTokens(model: ModelEntry, { request, outputTokens }: RankingQuery): number {
  const limit = Math.min(request.maxOutputTokens ?? model.estimatedMaxTokens, model.maxOutput);
  return Math.min(limit, outputTokens ?? limit) * request.choices;
}
