import { isLoopbackHost } from '../../core/http/loopback';

/** The settings that decide from where clients can reach a gateway. */
export interface Exposure {
  /** The host name of the public listener. */
  readonly hostname: string;
  readonly publicUrl: string | undefined;
  /** The number of proxies in front of the gateway. */
  readonly proxies: number;
}

/** Returns the setting that makes the gateway reachable from other machines, in words; undefined if none does. */
export function reachedFromElsewhere({ hostname, publicUrl, proxies }: Exposure): string | undefined {
  if (!isLoopbackHost(hostname)) return `the listener ${hostname}`;
  if (publicUrl !== undefined && !isLoopbackUrl(publicUrl)) return `PUBLIC_URL ${publicUrl}`;
  return proxies > 0 ? `${proxies} proxies in front (proxies.count of system.config.yml)` : undefined;
}

function isLoopbackUrl(url: string): boolean {
  return URL.canParse(url) && isLoopbackHost(new URL(url).hostname);
}
