import { saidPublicUrl } from '../../core/http/public-url';

/** Returns the address of the public listener: `PUBLIC_URL`, or else the address at which the document was read. */
export function publicServer(): object {
  return { url: saidPublicUrl() ?? '/' };
}

/** Returns a direct address with the scheme and port of `PUBLIC_URL`. The first label of its host is the upstream that it pins. */
export function directServer(host: string, listenerPort: number): object {
  const said = saidPublicUrl() ?? '';
  const { protocol, port } = new URL(URL.canParse(said) ? said : `http://localhost:${listenerPort}`);
  const url = `${protocol}//${host.replace('*', '{upstream}')}${port === '' ? '' : `:${port}`}`;
  if (!host.includes('*')) return { url };
  const description = 'A direct address: it pins one upstream.';
  return { url, description, variables: { upstream: { default: 'upstream' } } };
}
