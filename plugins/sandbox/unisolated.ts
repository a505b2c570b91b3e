import { StartFailure } from '../../core/base/start-failure';
import { isLoopbackHost, saidPublicUrl } from '../../core/http/public-url';
import type { OfferedInstance } from './offerings/offering';
import type { SandboxService } from './service';

/**
 * Commands without isolation can do what this process can. If other machines may reach the gateway, it refuses to start, and later rejects
 * every configuration that offers such sandboxes. It only warns if the operator allows them.
 * @throws StartFailure
 */
export function refuseUnisolated(service: SandboxService, isAllowed: boolean): void {
  const reach = reachedBy(service);
  if (reach === undefined) return;
  const check = (offered: readonly OfferedInstance[]) => {
    const names = unisolated(service, offered);
    if (names === '') return;
    const message = `offerings without isolation (${names}) are open to others, because of ${reach}`;
    if (isAllowed) service.log.warn(`${message}: their commands have all rights of this process`);
    else throw new StartFailure(`gateway.config.yml: ${message}. ${ADVICE}`);
  };
  check(service.offerings());
  service.gateway.liveConfiguration.take((next) => {
    check(service.offerings((name) => next.sections.get(name)));
    return () => undefined;
  });
}

const ADVICE =
  'Disable them, serve this machine alone, or set plugins.sandbox.allowUnisolated: true in system.config.yml. The log says why a supplier is not isolated.';

/** Returns a description of the setting that may make the gateway reachable from other machines; undefined if no setting does. */
function reachedBy({ gateway }: SandboxService): string | undefined {
  const { http, admin } = gateway.configuration.gateway;
  const listener = [http.hostname, admin.host].find((host) => !isLoopbackHost(host));
  if (listener !== undefined) return `the listener ${listener}`;
  if (saidPublicUrl() !== undefined) return `PUBLIC_URL ${saidPublicUrl()}`;
  const domain = process.env['SANDBOX_DOMAIN'];
  if (domain) return `SANDBOX_DOMAIN ${domain}`;
  const { count } = gateway.proxies;
  return count > 0 ? `${count} proxies in front (proxies.count of system.config.yml)` : undefined;
}

function unisolated({ drivers }: SandboxService, offered: readonly OfferedInstance[]): string {
  return offered
    .filter(({ offering }) => offering.status === 'AVAILABLE')
    .filter(({ offering }) => drivers.get(offering.supplier)?.capabilities.isolation === 'none')
    .map(({ offering }) => offering.name)
    .join(', ');
}
