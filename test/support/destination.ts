import type { Destination } from '../../core/wire/egress';

/** Makes an upstream's destination for egress, with short timeouts. */
export function destination(
  url: string,
  settings: {
    readonly name?: string;
    readonly allowPrivate?: boolean;
    readonly connectMs?: number;
    readonly headersMs?: number;
    readonly idleMs?: number;
  } = {},
): Destination {
  return {
    name: settings.name ?? 'acme',
    url: new URL(url),
    allowPrivate: settings.allowPrivate ?? false,
    timeouts: {
      connectMs: settings.connectMs ?? 5_000,
      headersMs: settings.headersMs ?? 5_000,
      idleMs: settings.idleMs ?? 5_000,
    },
  };
}
