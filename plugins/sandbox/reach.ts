const LOOPBACK = /^((.+\.)?localhost|127(\.\d+){3}|::1|\[::1\])$/i;

/** What tells where a gateway can be reached from. */
export interface Exposure {
  /** Of the public listener. */
  readonly hostname: string;
  readonly publicUrl: string | undefined;
  /** How many proxies stand in front. */
  readonly proxies: number;
}

/** Returns what says that others than this machine reach the gateway; undefined when nothing does. */
export function reachedFromElsewhere({ hostname, publicUrl, proxies }: Exposure): string | undefined {
  if (!LOOPBACK.test(hostname)) return `the listener ${hostname}`;
  if (publicUrl !== undefined && !isLoopbackUrl(publicUrl)) return `PUBLIC_URL ${publicUrl}`;
  return proxies > 0 ? `${proxies} proxies in front (proxies.count of system.config.yml)` : undefined;
}

function isLoopbackUrl(url: string): boolean {
  return URL.canParse(url) && LOOPBACK.test(new URL(url).hostname);
}
