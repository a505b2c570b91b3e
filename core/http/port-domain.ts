import { StartFailure } from '../start-failure';
import { saidPublicUrl } from './public-url';

/**
 * `SANDBOX_DOMAIN`, below which every port of a sandbox has a host of its own; undefined where ports are paths. The gateway's own host may
 * not be below it: it would belong to the ports, and pages of customers could set its cookies.
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
