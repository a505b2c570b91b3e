import type { Fetched, Fetching } from './rotating-credential';

/** Who the gateway is in the cloud it runs in. */
export type Cloud = 'aws' | 'google';

const FETCH: Readonly<Record<Cloud, () => Promise<Fetched>>> = { aws: fetchFromAws, google: fetchFromGoogle };

export function fetchingFrom(cloud: Cloud): Fetching {
  return { key: `cloud ${cloud}`, fetch: FETCH[cloud] };
}

/** The role of the container or the machine, in the form that programs print for `credential_process`. */
async function fetchFromAws(): Promise<Fetched> {
  // Loaded only where it is used: most gateways have no such upstream.
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

/** An access token of the application's default credentials. */
async function fetchFromGoogle(): Promise<Fetched> {
  const { GoogleAuth } = await import('google-auth-library');
  const client = await new GoogleAuth({ scopes: [GOOGLE_SCOPE] }).getClient();
  const { token } = await client.getAccessToken();
  if (typeof token !== 'string' || token === '') throw new Error('the cloud returned no access token');
  return { value: token, expiresAtMs: client.credentials.expiry_date ?? undefined };
}
