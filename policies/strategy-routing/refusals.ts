import { fail } from '../../core/base/errors';
import type { ModelRequest } from '../../core/calls/call';
import { refusedVersion } from '../../core/calls/candidates';
import { type Catalog, type Model, protocolsOf, translationTarget } from '../../core/catalog/catalog';
import { shortenName } from '../../core/catalog/model-names';
import { servedAt } from '../../core/catalog/protocols';
import { takesVersion, versionOf } from '../../core/catalog/upstream';
import type { UpstreamHealth } from '../../core/health/health';

/** Returns the model that a call names. @throws MODEL_AMBIGUOUS, MODEL_NOT_PRICED */
export function findModel(catalog: Catalog, { modelRequested }: ModelRequest): Model {
  const lookup = catalog.find(modelRequested);
  if ('found' in lookup) return lookup.found;
  const param = 'model';
  if ('ambiguous' in lookup) {
    const message = `The model name "${modelRequested}" is ambiguous: use ${lookup.ambiguous.join(' or ')}.`;
    throw fail('MODEL_AMBIGUOUS', { param, message, details: { models: lookup.ambiguous } });
  }
  const nearest = lookup.nearest.length === 0 ? '' : ` Did you mean ${lookup.nearest.join(' or ')}?`;
  throw fail('MODEL_NOT_PRICED', {
    param,
    message: `The model "${shortenName(modelRequested)}" does not exist on this gateway.${nearest}`,
  });
}

/** Returns the error for a model that has no candidate: either other protocols serve it, or no upstream can serve it now. */
export function noCandidate(model: Model, request: ModelRequest, health: UpstreamHealth): Error {
  const { protocol } = request;
  const speaking = model.entries.filter(
    (entry) => protocolsOf(entry).includes(protocol) || translationTarget(entry, protocol) !== undefined,
  );
  if (speaking.length === 0) {
    const others = servedAt(model.entries.flatMap(protocolsOf));
    return fail('MODEL_NOT_SUPPORTED', {
      param: 'model',
      message: `The model "${model.name}" is served only at ${others}.`,
    });
  }
  const enabled = speaking.flatMap(({ upstream }) => (upstream.disabled === undefined ? [upstream] : []));
  const refused = refusedVersion(enabled, request);
  if (refused !== undefined) return refused;
  const version = versionOf(request);
  const attempts = speaking.map(({ upstream }) => {
    const { name, disabled } = upstream;
    if (disabled !== undefined) return { upstream: name, outcome: 'disabled', reason: disabled };
    if (!takesVersion(upstream, version)) return { upstream: name, outcome: 'does not accept this anthropic-version' };
    const isDisabledByOperator = health.upstream(name).isDisabledByOperator;
    return { upstream: name, outcome: isDisabledByOperator ? 'disabled by an operator' : 'not in this pipeline' };
  });
  const message = `No upstream of the model "${model.name}" can serve this call.`;
  return fail('ALL_PROVIDERS_FAILED', { message, details: { attempts }, retryable: false });
}
