/** What shows an upstream that a call is the platform's. */
export interface Credential {
  /** Stays the same when the value is replaced: the operator's name, or where it comes from, such as `env NAME`. Shown; the value never is. */
  readonly name: string;
  /** Its share of the calls among the upstream's credentials. */
  readonly weight: number;
  /** As it is now; undefined while there is none. Empty: the upstream asks for none. */
  readonly value: string | undefined;
  /** Why there is none; undefined when there is one. */
  readonly missing: string | undefined;
}

interface Shown {
  readonly credentials: readonly Credential[];
  readonly credential: Credential;
}

/** Returns an upstream as it is asked with one of its credentials. */
export function askedWith<U extends Shown>(upstream: U, credential: Credential): U {
  return upstream.credential === credential ? upstream : { ...upstream, credential };
}

/** Returns an upstream as it is asked with this credential and with no other. */
export function keptTo<U extends Shown>(upstream: U, credential: Credential): U {
  return upstream.credentials.length === 1 ? upstream : { ...upstream, credential, credentials: [credential] };
}
