import { assertAllowed } from '../../core/allowed-models';
import type { CallFacts } from '../../core/call';
import type { Candidate, Model } from '../../core/catalog';
import type { Gateway } from '../../core/gateway';
import { definePolicy } from '../../core/policy';
import type { Protocol } from '../../core/upstream';
import { kindOf } from '../../core/upstream-gauge';
import { Affinity, callerOf, drawOfCaller } from './affinity';
import { type Choice, choose, type Field, type Wish } from './choose';
import { Exploration } from './explore';
import { findModel, noCandidate } from './refusals';
import { scoreByCost } from './strategies/cost';
import { scoreByQuality } from './strategies/quality';
import { scoreBySpeed } from './strategies/speed';
import type { Strategy } from './strategies/strategy';

const STRATEGIES: Readonly<Record<'quality' | 'speed' | 'cost', Strategy>> = {
  quality: scoreByQuality,
  speed: scoreBySpeed,
  cost: scoreByCost,
};

/** One for the process: a caller's cache does not depend on what is configured how often. */
const AFFINITY = new Affinity();

/** As many of a call's candidates as it can come to ask are told in its record. */
const TOLD_AT_MOST = 4;

export default definePolicy({
  name: 'strategy-routing',
  summary: 'Where may it go, best first?',
  schema: {
    type: 'object',
    properties: {
      strategy: { description: 'What "best" means.', enum: ['quality', 'speed', 'cost'], default: 'quality' },
      affinity: {
        description:
          'Prefers for an hour the upstream that served the same user before, for the sake of its prompt cache.',
        type: 'boolean',
        default: false,
      },
      upstreams: {
        description: 'Names of the upstreams that may be asked; `*` for all.',
        type: 'array',
        items: { type: 'string', 'x-names': 'upstream' },
        minItems: 1,
        default: ['*'],
      },
    },
  },
  needs: ['key', 'request'],
  provides: ['candidates'],
  prepare: ({ strategy: name, affinity, upstreams }, gateway) => {
    const { catalog, health } = gateway;
    const strategy = STRATEGIES[name];
    const fieldOf = fields(gateway, upstreams);
    const exploration = new Exploration();
    return async (call) => {
      const { request, key, facts } = call;
      facts.strategy = name;
      const model = findModel(catalog, request);
      const field = fieldOf(model, request.protocol);
      if (field.candidates.length === 0) throw noCandidate(model, request, health);
      facts.model = model.name;
      await assertAllowed(gateway, key, field.candidates, request);
      const caller = affinity ? callerOf(request, key, model.name) : undefined;
      const nowMs = health.now();
      const { outputTokens, inputShare } = health.use(model.name);
      const wish: Wish = {
        strategy,
        asked: { request, outputTokens, inputShare },
        kind: kindOf(request),
        nowMs,
        preferred: caller === undefined ? undefined : AFFINITY.find(caller, nowMs),
        random: caller === undefined ? Math.random : ({ upstream }) => drawOfCaller(caller, upstream.name),
      };
      const ordered = choose(field, wish);
      const choice = wish.preferred === undefined ? exploration.explore(ordered, wish) : ordered;
      if (choice.ranked.length === 0) throw noCandidate(model, request, health);
      if (choice.asks !== undefined) health.asked(choice.asks);
      if (caller !== undefined) {
        call.onEnd(async () => {
          if (facts.upstream !== undefined && facts.status < 300)
            AFFINITY.remember(caller, facts.upstream, health.now());
        });
      }
      tell(facts, choice);
      return { candidates: choice.ranked.map(({ candidate }) => candidate) };
    };
  },
});

/** The candidates of a model in this pipeline, found once per configuration. */
function fields(
  { catalog, health }: Gateway,
  upstreams: readonly string[],
): (model: Model, protocol: Protocol) => Field {
  const mayAsk = upstreams.includes('*') ? () => true : (each: Candidate) => upstreams.includes(each.upstream.name);
  const known = new Map<readonly Candidate[], Field>();
  return (model, protocol) => {
    const all = catalog.candidates(model, protocol);
    let field = known.get(all);
    if (field === undefined) {
      const candidates = all.filter(mayAsk);
      field = { candidates, gauges: candidates.map((each) => health.gauge(each)) };
      known.set(all, field);
    }
    return field;
  };
}

function tell({ routing }: CallFacts, { ranked }: Choice): void {
  routing.of = ranked.length;
  routing.candidates = ranked
    .slice(0, TOLD_AT_MOST)
    .map(({ candidate, score }) => ({ upstream: candidate.upstream.name, score }));
}
