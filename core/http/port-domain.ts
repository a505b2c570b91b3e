import { StartFailure } from '../start-failure';
import { saidPublicUrl } from './public-url';

/**
 * Reads `SANDBOX_DOMAIN`. Each port of a sandbox has a host of its own below this domain. Returns undefined if it is not set;
 * ports are then paths. The gateway's own host must not be below this domain: it would count as a port, and pages of customers
 * could set its cookies.
 * @throws StartFailure
 */
export function readPortDomain(env: NodeJS.ProcessEnv): string | undefined {
  const domain = (env['SANDBOX_DOMAIN'] ?? '').toLowerCase().replace(/\.$/, '');
  if (domain === '') return undefined;
  const publicUrl = saidPublicUrl();
  if (publicUrl === undefined || !URL.canParse(publicUrl)) return domain;
  const host = new URL(publicUrl).hostname.replace(/\.$/, '');
  if (host !== domain && !host.endsWith(`.${domain}`)) return domain;
  throw new StartFailure(
    `SANDBOX_DOMAIN (${domain}) must not contain the host of PUBLIC_URL (${host}): give sandboxes a domain of their own.`,
  );
}
