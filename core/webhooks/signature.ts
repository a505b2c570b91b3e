import { createHmac, randomBytes } from 'node:crypto';

/** A secret of a webhook. An older one signs beside the newest `until` a time; undefined: it is the newest. */
export interface WebhookSecret {
  readonly secret: string;
  /** A time of RFC 3339. */
  readonly until?: string;
}

/** What a signature covers. */
interface Signed {
  readonly id: string;
  /** The time of the attempt in seconds since 1970. */
  readonly timestamp: number;
  readonly body: string;
}

const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

export function makeSecret(): string {
  return PREFIX + randomBytes(SECRET_BYTES).toString('base64');
}

/** Returns the header `webhook-signature` of Standard Webhooks: a signature with each secret that is in force, separated by spaces. */
export function signatures({ id, timestamp, body }: Signed, secrets: readonly WebhookSecret[]): string {
  return secrets
    .filter(({ until }) => until === undefined || Date.parse(until) > timestamp * 1_000)
    .map(({ secret }) => {
      const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
    })
    .join(' ');
}

/** Returns the secrets of a webhook after a rotation: a new one and, until the grace period ends, the previous one. */
export function rotated(
  secrets: readonly WebhookSecret[],
  graceSeconds: number,
  nowMs: number,
): readonly WebhookSecret[] {
  const [previous] = secrets;
  const until = new Date(nowMs + graceSeconds * 1_000).toISOString();
  const kept = previous === undefined || graceSeconds === 0 ? [] : [{ ...previous, until }];
  return [{ secret: makeSecret() }, ...kept];
}
