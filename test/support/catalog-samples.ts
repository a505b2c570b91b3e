import type { Candidate, ModelEntry, Upstream } from '../../core/catalog/catalog';
import { type Price, plainPrice, type RateCard, type Rates, roughPrice } from '../../core/catalog/price';
import type { Credential, Protocol, UpstreamAdapter } from '../../core/catalog/upstream';
import type { FailedAttempt } from '../../core/health/health';

/** Makes adapters, upstreams, models and prices as plain values, for tests of pure functions. */
export function sampleAdapter(name: string, protocols: readonly Protocol[]): UpstreamAdapter {
  return {
    contract: 'upstream/1',
    name,
    protocols,
    schema: { type: 'object', properties: {}, additionalProperties: false },
    request: () => ({ path: '/', headers: {}, edits: [] }),
    authorize: () => ({}),
    judge: () => 'next',
  };
}

export function samplePrice(
  input: bigint,
  output: bigint,
  { above, ...rates }: Partial<Rates> & Partial<Pick<RateCard, 'above'>> = {},
): Price {
  return plainPrice({ input, output, ...rates }, above);
}

/** Returns the tokens of images that are the same for each detail. */
export function imageTokens(tokens: number): ModelEntry['imageTokens'] {
  return { low: tokens, high: tokens, original: tokens, auto: tokens, most: tokens };
}

export function sampleModel(name: string, rest: Partial<ModelEntry> = {}): ModelEntry {
  return {
    name,
    aliases: [],
    context: 100_000,
    maxOutput: 8_000,
    estimatedMaxTokens: 1_000,
    bounds: { imageByUrl: undefined, documentByUrl: undefined },
    imageTokens: imageTokens(1_600),
    tokenizerFactor: 1,
    toolOverheadTokens: 1_000,
    price: samplePrice(100_000_000n, 500_000_000n),
    ...rest,
  };
}

export function sampleCredential(
  value: string | undefined = 'sample-credential',
  rest: Partial<Credential> = {},
): Credential {
  return { name: 'env SAMPLE', weight: 1, value, missing: undefined, ...rest };
}

export function sampleUpstream(name: string, models: readonly ModelEntry[], rest: Partial<Upstream> = {}): Upstream {
  const { credential = sampleCredential() } = rest;
  return {
    name,
    url: new URL(`https://${name}.example`),
    adapters: [sampleAdapter('messages', ['messages'])],
    adapterSettings: {},
    credentials: [credential],
    credential,
    disabled: undefined,
    tier: 'standard',
    weight: 1,
    allowPrivate: false,
    timeouts: { connectMs: 1_000, headersMs: 1_000, firstTokenMs: undefined, idleMs: 1_000, answerMs: 1_000 },
    streamUsage: true,
    ignoreUsage: new Set(),
    models,
    ...rest,
  };
}

/** Makes one candidate: an upstream with one model. */
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

/** A failed attempt of the only account, which may eject the upstream. */
export const FAILED: FailedAttempt = { accountId: 'one', ms: 0, mayEject: true };
