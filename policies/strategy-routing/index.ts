import { mayDebug } from '../../core/accounts/keys';
import type { GatewayError } from '../../core/base/errors';
import { andThen } from '../../core/base/maybe-later';
import { flag, list, word } from '../../core/base/setting-schemas';
import type { CallFields, ModelRequest, PinnedPlace, RoutingExplanation } from '../../core/calls/call';
import { assertAllowed, keptCandidate, pricedCandidates, refusedVersion } from '../../core/calls/candidates';
import {
  demandsUnder,
  exclusionFor,
  type Narrowing,
  noCandidateAllowed,
  underDemands,
} from '../../core/calls/demanded';
import { sessionHash } from '../../core/catalog/affinity';
import type { Candidate, Model } from '../../core/catalog/catalog';
import { type CallWith, definePolicy } from '../../core/gateway/policy';
import { answerKindOf } from '../../core/health/gauge';
import type { UpstreamHealth } from '../../core/health/health';
import { routableEntries } from '../../core/health/state';
import type { RolloutPart } from '../../core/rollouts/live-rollouts';
import type { RankingInput } from './choose';
import { asksForReasons, explainRouting, noteChoice } from './explain';
import { Exploration } from './explore';
import { findModel, noCandidate } from './refusals';
import { type ModelRoute, mayAsk, mirrorOf, openRoutes, rankRoute } from './routes';
import { byCost, byQuality, bySessionCost, bySessionQuality, bySpeed, type Strategy } from './strategies';

/** The strategies. Each has one variant for single calls and one for calls of a session, which should stay at one upstream. */
const STRATEGIES: Readonly<Record<'quality' | 'speed' | 'cost', { alone: Strategy; inSession: Strategy }>> = {
  quality: { alone: byQuality, inSession: bySessionQuality },
  speed: { alone: bySpeed, inSession: bySpeed },
  cost: { alone: byCost, inSession: bySessionCost },
};

export default definePolicy({
  contract: 'policy/1',
  name: 'strategy-routing',
  summary: 'Which candidates may serve the call, best first?',
  schema: {
    type: 'object',
    properties: {
      strategy: word('What "best" means.', ['quality', 'speed', 'cost'], { default: 'quality' }),
      affinity: flag('Sends the calls of one session to one upstream among equals, to use its prompt cache.', {
        default: true,
      }),
      upstreams: list(
        'Names of the upstreams that may be tried; `*` for all.',
        { type: 'string', 'x-names': 'upstream' },
        { minItems: 1, default: ['*'] },
      ),
    },
  },
  needs: ['key', 'request'],
  provides: ['candidates'],
  declares: () => ({ translates: true }),
  serves: ({ upstreams }, { catalog }) => {
    const isNamed = mayAsk(upstreams);
    return ({ key, request }) => {
      const demands = demandsUnder(key.settings, request);
      const lookup = demands && catalog.find(request.modelRequested);
      if (demands === undefined || lookup === undefined || !('found' in lookup)) return true;
      const priceOf = catalog.customerPrices.priceOf(key.settings.markup);
      return lookup.found.entries.some(
        (entry) => isNamed(entry) && exclusionFor(entry, request, demands, priceOf) === undefined,
      );
    };
  },
  prepare: ({ strategy: name, affinity, upstreams }, gateway) => {
    const { catalog, health } = gateway;
    const { alone, inSession } = STRATEGIES[name];
    const routeOf = openRoutes(gateway, upstreams);
    const exploration = new Exploration();
    return (call, incoming) => {
      const { request, key, facts } = call;
      facts.strategy = name;
      const asked = findModel(catalog, request);
      let ranked: Ranked | undefined;
      const choose = (narrowing: Narrowing): Ranked => {
        if (ranked !== undefined) undo(call, ranked);
        ranked = narrowing.request.kept === undefined ? rank(call, asked, narrowing) : keeper(call, asked, narrowing);
        return ranked;
      };
      return andThen(assertAllowed(gateway, key, asked.entries, request), () =>
        andThen(underDemands(gateway, call, choose), ({ candidates, explain }) => {
          if (explain === undefined || !asksForReasons(incoming)) return { candidates };
          return mayDebug(gateway.database, key.keyId).then((may) => {
            if (may) facts.routing.explained = explain();
            return { candidates };
          });
        }),
      );
    };

    function rank(call: RoutedCall, asked: Model, narrowing: Narrowing): Ranked {
      const { key, facts } = call;
      const { request, demands } = narrowing;
      const taken = routeOf(call, asked, narrowing);
      const { all, variants } = taken;
      if (all.candidates.length === 0) throw noCandidate(asked, request, health);
      facts.model = asked.name;
      const session = affinity && request.session !== undefined ? sessionHash(key, request.session) : undefined;
      const strategy = session === undefined ? alone : inSession;
      const inputOf = ({ model }: ModelRoute) => rankingInput(request, model, strategy, session, health);
      const { route, input, ordered } = rankRoute(taken, inputOf);
      const { model, set } = route;
      facts.model = model.name;
      if (ordered.order.length === 0) {
        throw notAllowed(call, model, narrowing) ?? noCandidate(model, request, health);
      }
      if (variants !== undefined && demands?.areOfContent !== true)
        call.mirror = mirrorOf(variants, gateway.rollouts, inputOf);
      const choice = set.first === undefined ? exploration.explore(ordered, set, input) : ordered;
      const giveBack = choice.asks && health.asked(choice.asks);
      if (giveBack !== undefined) giveBackUnasked(call, giveBack);
      noteChoice(facts, choice, set, input);
      const chosen = choice.order.map((index) => set.candidates[index] as Candidate);
      return {
        candidates: pricedCandidates(chosen, request),
        explain: () => explainRouting(name, model, choice, set, input),
        part: variants?.part,
        giveBack,
      };
    }

    /** Returns the one candidate whose vendor keeps the objects that a call names. Rollouts do not apply to such a call. */
    function keeper(call: RoutedCall, asked: Model, narrowing: Narrowing): Ranked {
      const { request } = narrowing;
      call.facts.model = asked.name;
      const candidates = catalog.candidates(asked, request.protocol).filter(mayAsk(upstreams));
      const kept = keptCandidate(candidates, request.kept as PinnedPlace, health);
      const refused = refusedVersion([kept.upstream], request);
      if (refused !== undefined) throw refused;
      const excluded = noCandidateAllowed(gateway, call, asked, [kept], narrowing);
      if (excluded !== undefined) throw notAllowed(call, asked, narrowing) ?? excluded;
      return { candidates: pricedCandidates([kept], request) };
    }

    /** Returns the error for a call whose demands leave no candidate, with the upstreams that `GET /v1/models` shows. */
    function notAllowed(call: RoutedCall, model: Model, narrowing: Narrowing): GatewayError | undefined {
      const shown = routableEntries(model, health).filter(mayAsk(upstreams));
      return noCandidateAllowed(gateway, call, model, shown, narrowing);
    }

    /** Undoes what the first choice of candidates began, because the key's settings turned out to be newer. */
    function undo(call: RoutedCall, { part, giveBack }: Ranked): void {
      call.mirror = undefined;
      giveBack?.();
      if (part !== undefined) gateway.rollouts.leave(call, part);
    }
  },
});

type RoutedCall = CallWith<'key' | 'request'>;

/** The candidates of a call, best first, and what choosing them began. */
interface Ranked extends Pick<CallFields, 'candidates'> {
  readonly explain?: () => RoutingExplanation;
  readonly part?: RolloutPart | undefined;
  /** Lets another call try the untried candidate that this call was chosen to try. */
  readonly giveBack?: (() => void) | undefined;
}

function rankingInput(
  request: ModelRequest,
  model: Model,
  strategy: Strategy,
  session: number | undefined,
  health: UpstreamHealth,
): RankingInput {
  const { outputTokens, inputShare, sessionReadShare } = health.use(model.name);
  return {
    strategy,
    asked: { request, outputTokens, inputShare, sessionReadShare },
    kind: answerKindOf(request),
    nowMs: health.now(),
    session,
  };
}

/** Lets another call try the untried candidate if this call, chosen to try it, ends before any attempt, for example for lack of money. */
function giveBackUnasked(call: CallWith<never>, giveBack: () => void): void {
  call.onEnd(() => {
    if (call.facts.attempts === 0) giveBack();
  });
}
