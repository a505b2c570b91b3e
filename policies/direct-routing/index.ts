import { fail, type GatewayError } from '../../core/base/errors';
import type { ModelRequest } from '../../core/calls/call';
import { assertAllowed, keptCandidate, pricedCandidates, refusedVersion } from '../../core/calls/candidates';
import { noCandidateAllowed, underDemands } from '../../core/calls/demanded';
import { type Model, protocolsOf, type Upstream } from '../../core/catalog/catalog';
import { nearestNames, shortenName } from '../../core/catalog/model-names';
import { servedAt } from '../../core/catalog/protocols';
import { definePolicy } from '../../core/gateway/policy';
import { hostOf } from '../../core/http/request-head';

export default definePolicy({
  contract: 'policy/1',
  name: 'direct-routing',
  summary: 'Which upstream does the address name?',
  schema: { type: 'object', properties: {} },
  needs: ['key', 'request'],
  provides: ['candidates'],
  prepare: (_, gateway) => {
    const { catalog } = gateway;
    const byName = new Map(catalog.upstreams.map((upstream) => [upstream.name, upstream]));
    return async (call, { headers }) => {
      const { request } = call;
      const upstream = byName.get(firstLabel(hostOf({ headers })));
      if (upstream === undefined) throw noUpstream();
      call.facts.strategy = 'direct';
      const model = catalog.findExact(upstream.name, request.modelRequested);
      if (model === undefined) throw notSupported(upstream, request);
      const candidate = catalog.candidates(model, request.protocol).find((each) => each.upstream === upstream);
      if (candidate === undefined) throw noCandidate(upstream, model);
      const refused = refusedVersion([upstream], request);
      if (refused !== undefined) throw refused;
      if (gateway.health.upstream(upstream.name).isDisabledByOperator) throw disabledUpstream(upstream);
      call.facts.model = model.name;
      await assertAllowed(gateway, call.key, [candidate], request);
      const asked = request.kept === undefined ? candidate : keptCandidate([candidate], request.kept, gateway.health);
      return underDemands(gateway, call, (narrowing) => {
        const excluded = noCandidateAllowed(gateway, call, { entries: [candidate] }, [candidate], narrowing);
        if (excluded !== undefined) throw excluded;
        return { candidates: pricedCandidates([asked], narrowing.request) };
      });
    };
  },
});

/** The error for an upstream that an operator has disabled. An ejected upstream causes no error: the gateway tries it, because the client named it. */
function disabledUpstream({ name }: Upstream): GatewayError {
  return fail('ALL_PROVIDERS_FAILED', {
    message: `The upstream "${name}" is unavailable. Retry later, or use an address without an upstream.`,
    details: { attempts: [{ upstream: name, outcome: 'disabled by an operator' }] },
    retryable: false,
  });
}

function firstLabel(host: string): string {
  const dot = host.indexOf('.');
  return dot === -1 ? host : host.slice(0, dot);
}

function noUpstream(): GatewayError {
  return fail('NOT_FOUND', { message: 'No upstream has this direct route. Check the first label of the host name.' });
}

/** The error for a model that the upstream does not declare. The gateway does not normalize names on direct routes: the client must send the exact name. */
function notSupported({ name, models }: Upstream, { modelRequested }: ModelRequest): GatewayError {
  const near = nearestNames(
    modelRequested,
    models.map((model) => model.name),
  );
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`;
  return fail('MODEL_NOT_SUPPORTED', {
    param: 'model',
    message: `The upstream "${name}" has no model named exactly "${shortenName(modelRequested)}".${hint}`,
  });
}

function noCandidate(upstream: Upstream, { entries }: Model): GatewayError {
  const { name, disabled } = upstream;
  if (disabled === undefined) {
    const here = entries.filter((entry) => entry.upstream === upstream);
    const message = `The upstream "${name}" serves this model only at ${servedAt(here.flatMap(protocolsOf))}.`;
    return fail('MODEL_NOT_SUPPORTED', { param: 'model', message });
  }
  return fail('ALL_PROVIDERS_FAILED', {
    message: `The upstream "${name}" cannot serve this call. Name another upstream, or use an address that names none.`,
    details: { attempts: [{ upstream: name, outcome: 'disabled', reason: disabled }] },
    retryable: false,
  });
}
