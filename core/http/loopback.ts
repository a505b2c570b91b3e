const LOOPBACK = /^((.+\.)?localhost|127(\.\d+){3}|::1|\[::1\])$/i;

/** Returns whether only this machine reaches a host, by its name or address. */
export function isLoopbackHost(host: string): boolean {
  return LOOPBACK.test(host);
}
