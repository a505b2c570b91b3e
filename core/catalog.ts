import type { Price } from './price';
import type { Protocol, UpstreamAdapter } from './upstream';

export type Tier = 'official' | 'high-sla' | 'standard';

export interface Timeouts {
  readonly connectMs: number;
  readonly headersMs: number;
  /** From the request to the first content of a stream; undefined for none. */
  readonly firstTokenMs: number | undefined;
  /** Between two bytes of an answer. */
  readonly idleMs: number;
}

/** A model provider we can ask: one entry of serviceEndpoints. */
export interface Upstream {
  readonly name: string;
  readonly url: URL;
  readonly adapters: readonly UpstreamAdapter[];
  readonly adapterSettings: unknown;
  /** The platform's credential; undefined when its variable is not set: the upstream is disabled. */
  readonly credential: string | undefined;
  /** Why it is not asked, or undefined when it is. */
  readonly disabled: string | undefined;
  readonly tier: Tier;
  readonly weight: number;
  readonly allowPrivate: boolean;
  readonly timeouts: Timeouts;
  readonly prefill: boolean;
  readonly streamUsage: boolean;
}

/** A model at one upstream. */
export interface ModelEntry {
  /** The upstream's own name for it. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly context: number;
  readonly maxOutput: number;
  /** Output tokens held for when a call names no limit. */
  readonly estimatedMaxTokens: number;
  readonly imageTokens: number;
  readonly price: Price;
}

/** One ordered choice for a call. */
export interface Candidate {
  readonly upstream: Upstream;
  readonly model: ModelEntry;
  /** The one of the upstream's adapters that speaks the call's protocol. */
  readonly adapter: UpstreamAdapter;
}

/** All entries, of all upstreams, that are the same model. */
export interface Model {
  /** The name it is shown under: that of its best-tier entry. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly entries: readonly { readonly upstream: Upstream; readonly model: ModelEntry }[];
}

export type Lookup =
  | { readonly found: Model }
  | { readonly ambiguous: readonly string[] }
  | { readonly unknown: true; readonly nearest: readonly string[] };

export interface Catalog {
  readonly upstreams: readonly Upstream[];
  readonly models: readonly Model[];
  find(name: string): Lookup;
  /** The candidates of a model that speak a protocol and are enabled, unordered. */
  candidates(model: Model, protocol: Protocol): readonly Candidate[];
}
