import type { Fetched, Fetching } from './rotating-credential';

/** A cloud whose identity the gateway can use as a credential. */
export type Cloud = 'aws' | 'google';

const FETCH: Readonly<Record<Cloud, () => Promise<Fetched>>> = { aws: fetchFromAws, google: fetchFromGoogle };

export function fetchingFrom(cloud: Cloud): Fetching {
  return { key: `cloud ${cloud}`, fetch: FETCH[cloud] };
}

/** Fetches the credentials of the container's or the machine's role, in the form that programs print for `credential_process`. */
async function fetchFromAws(): Promise<Fetched> {
  // The package is loaded here only, because most gateways have no such upstream.
  const { fromContainerMetadata, fromInstanceMetadata, ENV_CMDS_FULL_URI, ENV_CMDS_RELATIVE_URI } = await import(
    '@smithy/credential-provider-imds'
  );
  const isContainer = [ENV_CMDS_FULL_URI, ENV_CMDS_RELATIVE_URI].some((name) => (process.env[name] ?? '') !== '');
  const provide = isContainer ? fromContainerMetadata() : fromInstanceMetadata();
  const { accessKeyId, secretAccessKey, sessionToken, expiration } = await provide();
  const value = { AccessKeyId: accessKeyId, SecretAccessKey: secretAccessKey, SessionToken: sessionToken };
  return { value: JSON.stringify(value), expiresAtMs: expiration?.getTime() };
}

const GOOGLE_SCOPE = 'https://www.googleapis.com/auth/cloud-platform';

/** Fetches an access token of the application's default credentials. */
async function fetchFromGoogle(): Promise<Fetched> {
  const { GoogleAuth } = await import('google-auth-library');
  const client = await new GoogleAuth({ scopes: [GOOGLE_SCOPE] }).getClient();
  const { token } = await client.getAccessToken();
  if (typeof token !== 'string' || token === '') throw new Error('the cloud returned no access token');
  return { value: token, expiresAtMs: client.credentials.expiry_date ?? undefined };
}
