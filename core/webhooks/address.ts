import { privateRange } from '../wire/guarded-connector';

const MAX_LENGTH = 2_000;

/**
 * Returns what is wrong with the URL of a webhook; undefined if nothing is. `allowPrivate` accepts plain HTTP and addresses that are not
 * public. The addresses of a name are checked at each delivery, when it is resolved.
 */
export function webhookUrlProblem(text: string, allowPrivate: boolean): string | undefined {
  if (text.length > MAX_LENGTH) return `expected at most ${MAX_LENGTH} characters`;
  if (!URL.canParse(text)) return 'expected a URL such as https://example.com/webhooks';
  const { protocol, username, password, hash, hostname, port } = new URL(text);
  if (protocol !== 'https:' && !(allowPrivate && protocol === 'http:'))
    return 'expected a URL that begins with https://';
  if (username !== '' || password !== '') return 'expected a URL without user and password';
  if (hash !== '') return 'expected a URL without a fragment';
  if (port === '0') return 'expected a port from 1 to 65535';
  if (!allowPrivate && isPrivateHost(hostname)) return 'expected the URL of a public address';
  return undefined;
}

/** Returns whether the host shows that it is not public: an IP address that is not, or a name for this machine. */
function isPrivateHost(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$|\.$/g, '');
  if (host === 'localhost' || host.endsWith('.localhost')) return true;
  const isAddress = hostname.startsWith('[') || /^[\d.]+$/.test(host);
  return isAddress && privateRange(host) !== undefined;
}
