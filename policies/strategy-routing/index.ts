import type { IncomingMessage } from 'node:http';
import { mayDebug } from '../../core/accounts/keys';
import type { MaybeLater } from '../../core/base/maybe-later';
import type { CallFields, ModelRequest } from '../../core/calls/call';
import { assertAllowed, keptCandidate, pricedCandidates, refusedVersion } from '../../core/calls/candidates';
import { sessionHash } from '../../core/catalog/affinity';
import type { Candidate, Model } from '../../core/catalog/catalog';
import type { Gateway } from '../../core/gateway/gateway';
import { type CallWith, definePolicy } from '../../core/gateway/policy';
import { answerKindOf } from '../../core/health/gauge';
import type { UpstreamHealth } from '../../core/health/health';
import type { RankingInput } from './choose';
import { asksForReasons, explainRouting, noteChoice } from './explain';
import { Exploration } from './explore';
import { findModel, noCandidate } from './refusals';
import { type ModelRoute, mayAsk, mirrorOf, openRoutes, rankRoute, type TakenRoute } from './routes';
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
      strategy: { description: 'What "best" means.', enum: ['quality', 'speed', 'cost'], default: 'quality' },
      affinity: {
        description: 'Sends the calls of one session to one upstream among equals, to use its prompt cache.',
        type: 'boolean',
        default: true,
      },
      upstreams: {
        description: 'Names of the upstreams that may be tried; `*` for all.',
        type: 'array',
        items: { type: 'string', 'x-names': 'upstream' },
        minItems: 1,
        default: ['*'],
      },
    },
  },
  needs: ['key', 'request'],
  provides: ['candidates'],
  declares: () => ({ translates: true }),
  prepare: ({ strategy: name, affinity, upstreams }, gateway) => {
    const { catalog, health } = gateway;
    const { alone, inSession } = STRATEGIES[name];
    const routeOf = openRoutes(gateway, upstreams);
    const exploration = new Exploration();
    return (call, incoming) => {
      const { request, key, facts } = call;
      facts.strategy = name;
      const asked = findModel(catalog, request);
      if (request.kept !== undefined) return keepers(gateway, call, asked, upstreams);
      const taken = routeOf(call, asked);
      if (taken.set.candidates.length === 0) throw noCandidate(asked, request, health);
      facts.model = asked.name;
      const allowed = assertAllowed(gateway, key, asked.entries, request);
      return allowed instanceof Promise ? allowed.then(() => rank(call, incoming, taken)) : rank(call, incoming, taken);
    };

    function rank(call: RoutedCall, incoming: IncomingMessage, taken: TakenRoute): MaybeLater<Routed> {
      const { request, key, facts } = call;
      const session = affinity && request.session !== undefined ? sessionHash(key, request.session) : undefined;
      const strategy = session === undefined ? alone : inSession;
      const inputOf = ({ model }: ModelRoute) => rankingInput(request, model, strategy, session, health);
      const { route, input, ordered } = rankRoute(taken, inputOf);
      const { model, set } = route;
      facts.model = model.name;
      if (ordered.order.length === 0) throw noCandidate(model, request, health);
      if (taken.variants !== undefined) call.mirror = mirrorOf(taken.variants, gateway.rollouts, inputOf);
      const choice = set.first === undefined ? exploration.explore(ordered, set, input) : ordered;
      if (choice.asks !== undefined) giveBackUnasked(call, health.asked(choice.asks));
      noteChoice(facts, choice, set, input);
      const chosen = choice.order.map((index) => set.candidates[index] as Candidate);
      const routed = { candidates: pricedCandidates(chosen, request) };
      if (!asksForReasons(incoming)) return routed;
      const explained = explainRouting(name, model, choice, set, input);
      return mayDebug(gateway.database, key.keyId).then((may) => {
        if (may) facts.routing.explained = explained;
        return routed;
      });
    }
  },
});

type RoutedCall = CallWith<'key' | 'request'>;
type Routed = Pick<CallFields, 'candidates'>;

/** Returns the one candidate whose vendor keeps the objects that a call names. Rollouts do not apply to such a call. */
async function keepers(
  gateway: Gateway,
  { request, key, facts }: RoutedCall,
  asked: Model,
  upstreams: readonly string[],
): Promise<Routed> {
  facts.model = asked.name;
  await assertAllowed(gateway, key, asked.entries, request);
  const candidates = gateway.catalog.candidates(asked, request.protocol).filter(mayAsk(upstreams));
  const { kept } = request;
  if (kept === undefined) return { candidates: pricedCandidates([], request) };
  const keeper = keptCandidate(candidates, kept, gateway.health);
  const refused = refusedVersion([keeper.upstream], request);
  if (refused !== undefined) throw refused;
  return { candidates: pricedCandidates([keeper], request) };
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
