/** A secret that shows an upstream that a call comes from the platform. */
export interface Credential {
  /** The operator's name of it, or its source, such as `env NAME`. The name is shown and stays when the value changes; the value is never shown. */
  readonly name: string;
  /** Its share of the calls, relative to the upstream's other credentials. */
  readonly weight: number;
  /** The current value; undefined while there is none. Empty: the upstream needs no credential. */
  readonly value: string | undefined;
  /** Why there is no value; undefined when there is one. */
  readonly missing: string | undefined;
}

interface Shown {
  readonly credentials: readonly Credential[];
  readonly credential: Credential;
}

/** Returns a copy of an upstream that uses one of its credentials for the next attempt. */
export function askedWith<U extends Shown>(upstream: U, credential: Credential): U {
  return upstream.credential === credential ? upstream : { ...upstream, credential };
}

/** Returns a copy of an upstream that has this credential only. */
export function keptTo<U extends Shown>(upstream: U, credential: Credential): U {
  return upstream.credentials.length === 1 ? upstream : { ...upstream, credential, credentials: [credential] };
}
