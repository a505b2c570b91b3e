import { execFile } from 'node:child_process';
import type { Logger } from 'pino';
import { withTimeout } from '../base/with-timeout';
import type { Catalog } from '../catalog/catalog';
import type { Credential } from '../catalog/upstream';
import { withoutOwnSecrets } from './nameable';

/** The credential that a command or a cloud's service returned. */
export interface Fetched {
  readonly value: string;
  /** When the credential expires, in milliseconds since 1970; undefined if the source does not report it. */
  readonly expiresAtMs?: number | undefined;
}

/** A function that fetches a credential, and the key of its source. */
export interface Fetching {
  /** Identifies the source. A credential survives a reload of the configuration if its source has the same key before and after. */
  readonly key: string;
  readonly fetch: () => Promise<Fetched>;
}

/** The time until the next attempt after a failure; it is shorter than after a success. */
const AGAIN_AFTER_FAILURE_MS = 15_000;
const MIN_REFRESH_MS = 1_000;
/** The share of a credential's lifetime after which it is fetched again. */
const SHARE_OF_LIFE = 0.8;

interface CredentialState {
  last: Fetched | undefined;
  missing: string | undefined;
  /** When the credential must be fetched again, in milliseconds since 1970. */
  dueAtMs: number;
  /** The running fetch, which upstreams with the same credential share; undefined if none is running. */
  underWay: Promise<void> | undefined;
}

const CREDENTIAL_STATES = new Map<string, CredentialState>();

/** A credential that the gateway fetches repeatedly while its configuration is in force. After a failure, the last value stays in use. */
export class RotatingCredential implements Credential {
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  readonly #kept: CredentialState;

  constructor(
    readonly name: string,
    readonly weight: number,
    private readonly fetching: Fetching,
    private readonly refreshEveryMs: number,
  ) {
    const unknown: CredentialState = {
      last: undefined,
      missing: 'the credential has not been fetched yet',
      dueAtMs: 0,
      underWay: undefined,
    };
    this.#kept = CREDENTIAL_STATES.get(fetching.key) ?? unknown;
    CREDENTIAL_STATES.set(fetching.key, this.#kept);
  }

  get value(): string | undefined {
    return this.#kept.last?.value;
  }

  get missing(): string | undefined {
    return this.value === undefined ? this.#kept.missing : undefined;
  }

  /** Fetches the credential if it is due. Never rejects. */
  async fetchIfDue(upstream: string, log: Logger): Promise<void> {
    const kept = this.#kept;
    if (Date.now() < kept.dueAtMs) return;
    kept.underWay ??= this.#fetch(upstream, log).then((goodForMs) => {
      kept.dueAtMs = Date.now() + goodForMs;
      kept.underWay = undefined;
    });
    await kept.underWay;
  }

  /** Fetches the credential whenever it is due, until `stop`. */
  start(upstream: string, log: Logger): void {
    if (this.#isStopped) return;
    const again = () => this.fetchIfDue(upstream, log).then(() => this.start(upstream, log));
    this.#timer = setTimeout(() => void again(), Math.max(0, this.#kept.dueAtMs - Date.now()));
    this.#timer.unref();
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#timer);
  }

  /** Fetches the credential. Returns after how many milliseconds it must be fetched again. */
  async #fetch(upstream: string, log: Logger): Promise<number> {
    const { name, refreshEveryMs } = this;
    try {
      const last = await withTimeout(this.fetching.fetch(), FETCHED_WITHIN_MS, tooLate);
      Object.assign(this.#kept, { last, missing: undefined });
      const lifeMs = (last.expiresAtMs ?? Number.POSITIVE_INFINITY) - Date.now();
      return Math.max(MIN_REFRESH_MS, Math.min(refreshEveryMs, lifeMs * SHARE_OF_LIFE));
    } catch (error) {
      const reason = (error instanceof Error ? error.message : String(error)).slice(0, MAX_REASON_LENGTH);
      this.#kept.missing = `the credential could not be fetched: ${reason}`;
      const lastIsUsed = this.value !== undefined;
      log.error(
        { upstream, credential: name, reason, lastIsUsed },
        'a credential could not be fetched; the fetch is retried',
      );
      return Math.min(refreshEveryMs, AGAIN_AFTER_FAILURE_MS);
    }
  }
}

/** The longest time that a start or a reload waits for credentials. Commands that fetch one are killed earlier. */
const FETCHED_WITHIN_MS = 15_000;

function tooLate(): Error {
  return new Error(`no credential arrived within ${FETCHED_WITHIN_MS / 1_000} s`);
}

const MAX_REASON_LENGTH = 300;

/** Fetches the rotating credentials of the configuration in force. */
export class CredentialRotation {
  #running: readonly RotatingCredential[] = [];

  constructor(private readonly log: Logger) {}

  /**
   * Fetches the credentials that are due, so that the first call has them. Returns a function that stops fetching for the previous
   * configuration and starts it for this one.
   */
  async prepare({ upstreams }: Pick<Catalog, 'upstreams'>): Promise<() => void> {
    const next = upstreams.flatMap(({ name, credentials }) =>
      credentials.flatMap((each) => (each instanceof RotatingCredential ? [{ name, credential: each }] : [])),
    );
    await Promise.all(next.map(({ name, credential }) => credential.fetchIfDue(name, this.log)));
    return () => {
      for (const each of this.#running) each.stop();
      this.#running = next.map(({ credential }) => credential);
      for (const { name, credential } of next) credential.start(name, this.log);
    };
  }

  async stop(): Promise<void> {
    for (const each of this.#running) each.stop();
  }
}

const COMMAND_WITHIN_MS = 10_000;
const MAX_OUTPUT_LENGTH = 64 * 1024;

/** Runs a program without a shell, in the folder of the configuration and without the gateway's own secrets. */
export function fetchingCommand(command: readonly string[], cwd: string, env: NodeJS.ProcessEnv): Fetching {
  const [program = '', ...args] = command;
  const options = {
    cwd,
    env: withoutOwnSecrets(env),
    timeout: COMMAND_WITHIN_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MAX_OUTPUT_LENGTH,
    windowsHide: true,
  } as const;
  const fetch = () =>
    new Promise<Fetched>((resolve, reject) => {
      execFile(program, args, options, (error, stdout) => {
        if (error !== null) return reject(new Error(reasonOf(error)));
        try {
          resolve(parseCredentialOutput(stdout));
        } catch (problem) {
          reject(problem);
        }
      });
    });
  return { key: JSON.stringify([command, cwd]), fetch };
}

/** Returns why a program failed. Omits its arguments and output, because both may hold secrets. */
function reasonOf({ code, signal, killed }: { code?: unknown; signal?: unknown; killed?: boolean }): string {
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return `the command printed more than ${MAX_OUTPUT_LENGTH} bytes`;
  if (killed === true) return `the command did not exit within ${COMMAND_WITHIN_MS / 1_000} s`;
  if (typeof code === 'number') return `it ended with ${code}`;
  return `the command could not be run (${String(code ?? signal ?? 'unknown')})`;
}

/**
 * Parses a program's output: a credential alone, JSON with `credential` and `expiresAt`, or the JSON of AWS's `credential_process`. In the
 * AWS case, the whole JSON text is the credential.
 */
export function parseCredentialOutput(output: string): Fetched {
  const text = output.trim();
  if (text === '') throw new Error('the credential command printed nothing to standard output');
  const json = text.startsWith('{') ? parseObject(text) : undefined;
  const value = typeof json?.['credential'] === 'string' ? json['credential'] : text;
  if (json === undefined && !/^[\x20-\x7e]+$/.test(value))
    throw new Error('the command printed more than one line; it must print the credential on one line, or JSON');
  const expires = json?.['expiresAt'] ?? json?.['Expiration'];
  const expiresAtMs = typeof expires === 'string' ? Date.parse(expires) : undefined;
  if (Number.isNaN(expiresAtMs))
    throw new Error('the command printed an expiry (`expiresAt` or `Expiration`) that is not a valid time');
  return { value, expiresAtMs };
}

function parseObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    throw new Error('the command printed invalid JSON');
  }
}

/** A cloud whose identity the gateway can use as a credential. */
type Cloud = 'aws' | 'google';

const FETCH: Readonly<Record<Cloud, () => Promise<Fetched>>> = { aws: fetchFromAws, google: fetchFromGoogle };

export function fetchingFrom(cloud: Cloud): Fetching {
  return { key: `cloud ${cloud}`, fetch: FETCH[cloud] };
}

/** Fetches the credentials of the container's or machine's role, in the JSON format that AWS defines for `credential_process`. */
async function fetchFromAws(): Promise<Fetched> {
  // The AWS package is loaded only here, because most gateways have no upstream with AWS credentials.
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

/** Fetches an access token with Google's application default credentials. */
async function fetchFromGoogle(): Promise<Fetched> {
  const { GoogleAuth } = await import('google-auth-library');
  const client = await new GoogleAuth({ scopes: [GOOGLE_SCOPE] }).getClient();
  const { token } = await client.getAccessToken();
  if (typeof token !== 'string' || token === '')
    throw new Error('Google returned no access token for the application default credentials');
  return { value: token, expiresAtMs: client.credentials.expiry_date ?? undefined };
}
