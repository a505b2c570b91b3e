import type { Dispatcher } from 'undici';
import type { Upstream } from './catalog';

/**
 * The one way out: every upstream and every supplier is dialled through here. Addresses are resolved once per connection,
 * every resolved address must be public unless `allowPrivate`, and the connection goes to an address that was checked.
 */
export interface Egress {
  /** The pool of an upstream; kept over reloads while its URL and settings stay the same. */
  pool(upstream: Pick<Upstream, 'name' | 'url' | 'allowPrivate' | 'timeouts'>): Dispatcher;
  close(): Promise<void>;
}

export declare function openEgress(): Egress;
