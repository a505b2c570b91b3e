import { TEXT } from '../../../core/api/fields';
import { type ModelEntry, protocolsOf, type Upstream } from '../../../core/catalog/catalog';
import type { Credential } from '../../../core/catalog/credential';
import { PROTOCOL_NAMES, type Protocol } from '../../../core/catalog/protocols';
import { fail, type GatewayError } from '../../../core/errors';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { chooseCredential } from '../../../core/health/choose-credential';
import type { Speaking } from '../call-upstream';

/** The fields that choose the model, protocol and credential of an upstream to ask. */
export const ASKED = {
  type: 'object',
  additionalProperties: false,
  properties: { model: TEXT, protocol: { enum: PROTOCOL_NAMES }, credential: TEXT },
  example: { model: 'demo-model', protocol: 'messages' },
} as const;

export interface Asked {
  readonly model: ModelEntry;
  readonly speaking: Speaking;
}

/** Returns the named model and protocol; by default the upstream's cheapest model in the first of its protocols. */
export function findAsked(upstream: Upstream, named: string | undefined, wanted: Protocol | undefined): Asked {
  const { name, adapters, disabled, models } = upstream;
  if (disabled !== undefined) throw fail('CONFLICT', { message: `The upstream "${name}" is disabled: ${disabled}.` });
  const meant = models.filter((each) => named === undefined || each.name === named);
  if (meant.length === 0) throw invalid('model', `"${name}" has ${models.map((each) => each.name).join(', ')}`);
  for (const adapter of adapters) {
    for (const protocol of adapter.protocols) {
      if (wanted !== undefined && protocol !== wanted) continue;
      const serving = meant.filter((model) => protocolsOf({ upstream, model }).includes(protocol));
      const model = cheapestOf(serving);
      if (model !== undefined) return { model, speaking: { adapter, protocol } };
    }
    const model = adapter.own === undefined ? undefined : cheapestOf(meant);
    if (model !== undefined) return { model, speaking: { adapter, protocol: wanted ?? 'chat' } };
  }
  throw invalid('protocol', `"${named ?? name}" does not speak it`);
}

/** Returns the named credential; by default one that calls would use now. */
export function findCredential({ health }: PluginGateway, upstream: Upstream, named: string | undefined): Credential {
  if (named === undefined) return chooseCredential(upstream, health, { session: undefined });
  const { name, credentials } = upstream;
  const meant = credentials.find((each) => each.name === named);
  if (meant !== undefined) return meant;
  throw invalid('credential', `"${name}" has ${credentials.map((each) => each.name).join(', ')}`);
}

function cheapestOf(models: readonly ModelEntry[]): ModelEntry | undefined {
  const [cheapest] = [...models].sort((one, two) => Number(one.price.rates.output - two.price.rates.output));
  return cheapest;
}

export function invalid(param: string, problem: string): GatewayError {
  return fail('INVALID_FIELD', { param, message: `${param}: ${problem}` });
}
