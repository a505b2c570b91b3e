import type { Candidate, ModelEntry, Upstream } from '../../core/catalog';
import { type Price, roughPrice } from '../../core/price';
import type { Protocol, UpstreamAdapter } from '../../core/upstream';
import { UNKNOWN_USAGE } from '../../core/usage';

/** Adapters, upstreams, models and prices as plain values, for tests of what is pure. */
export function sampleAdapter(name: string, protocols: readonly Protocol[]): UpstreamAdapter {
  return {
    contract: 'upstream/1',
    name,
    protocols,
    schema: { type: 'object', properties: {}, additionalProperties: false },
    request: () => ({ path: '/', headers: {}, edits: [] }),
    authorize: () => ({}),
    judge: () => 'next',
    readEvent: () => ({}),
    readBody: () => ({ usage: UNKNOWN_USAGE, contentBytes: 0 }),
  };
}

export function samplePrice(inputE8: bigint, outputE8: bigint, rest: Partial<Price> = {}): Price {
  return {
    inputE8,
    outputE8,
    cacheWriteE8: inputE8,
    cacheWrite1hE8: inputE8,
    cacheReadE8: inputE8,
    above: undefined,
    ...rest,
  };
}

export function sampleModel(name: string, rest: Partial<ModelEntry> = {}): ModelEntry {
  return {
    name,
    aliases: [],
    context: 100_000,
    maxOutput: 8_000,
    estimatedMaxTokens: 1_000,
    price: samplePrice(100_000_000n, 500_000_000n),
    ...rest,
  };
}

export function sampleUpstream(name: string, models: readonly ModelEntry[], rest: Partial<Upstream> = {}): Upstream {
  return {
    name,
    url: new URL(`https://${name}.example`),
    adapters: [sampleAdapter('messages', ['messages'])],
    adapterSettings: {},
    credential: 'sample-credential',
    disabled: undefined,
    tier: 'standard',
    weight: 1,
    allowPrivate: false,
    timeouts: { connectMs: 1_000, headersMs: 1_000, firstTokenMs: undefined, idleMs: 1_000 },
    prefill: false,
    streamUsage: true,
    models,
    ...rest,
  };
}

/** One candidate: an upstream with one model. */
export function sampleCandidate(
  name: string,
  { model = {}, upstream = {} }: { model?: Partial<ModelEntry>; upstream?: Partial<Upstream> } = {},
): Candidate {
  const entry = sampleModel('m', model);
  const at = sampleUpstream(name, [entry], upstream);
  return {
    upstream: at,
    model: entry,
    adapter: sampleAdapter('messages', ['messages']),
    rough: roughPrice(entry.price),
  };
}
