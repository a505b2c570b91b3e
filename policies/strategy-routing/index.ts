import { assertAllowed } from '../../core/allowed-models';
import type { ModelRequest } from '../../core/call';
import type { Candidate, Catalog, Model } from '../../core/catalog';
import { fail } from '../../core/errors';
import { shortenName } from '../../core/model-names';
import { definePolicy } from '../../core/policy';
import { rankByCost } from './strategies/cost';
import { rankByQuality } from './strategies/quality';
import { rankBySpeed } from './strategies/speed';
import type { LiveFacts, Ranker } from './strategies/strategy';

const RANKERS: Readonly<Record<'quality' | 'speed' | 'cost', Ranker>> = {
  quality: rankByQuality,
  speed: rankBySpeed,
  cost: rankByCost,
};

export default definePolicy({
  name: 'strategy-routing',
  summary: 'Where may it go, best first?',
  schema: {
    type: 'object',
    properties: {
      strategy: { description: 'What "best" means.', enum: ['quality', 'speed', 'cost'], default: 'quality' },
      affinity: { description: 'Prefers the upstream that served the caller before.', enum: [false], default: false },
      upstreams: {
        description: 'Names of the upstreams that may be asked; `*` for all.',
        type: 'array',
        items: { type: 'string' },
        minItems: 1,
        default: ['*'],
      },
    },
  },
  needs: ['key', 'request'],
  provides: ['candidates'],
  prepare: ({ strategy, upstreams }, gateway) => {
    const rank = RANKERS[strategy];
    const mayAsk = upstreams.includes('*') ? () => true : (each: Candidate) => upstreams.includes(each.upstream.name);
    return async (call) => {
      const { request } = call;
      call.facts.strategy = strategy;
      const model = findModel(gateway.catalog, request);
      const candidates = gateway.catalog.candidates(model, request.protocol).filter(mayAsk);
      if (candidates.length === 0) throw noCandidate(model, request);
      call.facts.model = model.name;
      await assertAllowed(gateway, call.key, candidates, request);
      const facts: LiveFacts = { request, of: (upstream) => gateway.health.facts(upstream) };
      return { candidates: order(candidates, (one, two) => rank(one, two, facts)) };
    };
  },
});

function findModel(catalog: Catalog, { modelRequested }: ModelRequest): Model {
  const lookup = catalog.find(modelRequested);
  if ('found' in lookup) return lookup.found;
  const param = 'model';
  if ('ambiguous' in lookup) {
    const message = `"${modelRequested}" could mean ${lookup.ambiguous.join(' or ')}; name one of them.`;
    throw fail('MODEL_AMBIGUOUS', { param, message, details: { models: lookup.ambiguous } });
  }
  const nearest = lookup.nearest.length === 0 ? '' : ` Did you mean ${lookup.nearest.join(' or ')}?`;
  throw fail('MODEL_NOT_PRICED', {
    param,
    message: `There is no model "${shortenName(modelRequested)}" here.${nearest}`,
  });
}

/** A model that is served only in the other protocol, or that nobody can serve now: all its upstreams are disabled. */
function noCandidate(model: Model, { protocol }: ModelRequest): Error {
  const speaking = model.entries.filter(({ upstream }) =>
    upstream.adapters.some((each) => each.protocols.includes(protocol)),
  );
  if (speaking.length === 0) {
    const other = protocol === 'messages' ? '/v1/chat/completions' : '/v1/messages';
    return fail('MODEL_NOT_SUPPORTED', { param: 'model', message: `"${model.name}" is served at ${other} only.` });
  }
  const attempts = speaking.map(({ upstream }) => ({
    upstream: upstream.name,
    outcome: upstream.disabled === undefined ? 'not in this pipeline' : 'disabled',
    reason: upstream.disabled,
  }));
  const message = `No upstream of "${model.name}" can be asked.`;
  return fail('ALL_PROVIDERS_FAILED', { message, details: { attempts }, retryable: false });
}

/** Best first; among equals a draw by weight, so that ties share the load. */
function order(
  candidates: readonly Candidate[],
  compare: (one: Candidate, two: Candidate) => number,
): readonly Candidate[] {
  if (candidates.length === 1) return candidates;
  const drawn = new Map(candidates.map((each) => [each, Math.random() ** (1 / each.upstream.weight)]));
  return [...candidates].sort((one, two) => compare(one, two) || (drawn.get(two) ?? 0) - (drawn.get(one) ?? 0));
}
