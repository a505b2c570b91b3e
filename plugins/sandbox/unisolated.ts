import { StartFailure } from '../../core/start-failure';
import type { SandboxService } from './service';

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1|\[::1\])$/i;

/**
 * Commands of such sandboxes can do what this process can: that is for whoever sits at this machine, who is told.
 * @throws StartFailure where others can reach the gateway
 */
export function refuseUnisolated({ gateway, drivers, offerings, log }: SandboxService, isAllowed: boolean): void {
  const { hostname } = gateway.configuration.gateway.http;
  const open = offerings().filter(
    ({ offering }) =>
      offering.status === 'AVAILABLE' && drivers.get(offering.supplier)?.capabilities.isolation === 'none',
  );
  if (open.length === 0) return;
  const names = open.map(({ offering }) => offering.name).join(', ');
  if (isAllowed || LOOPBACK.test(hostname)) {
    log.warn({ offerings: names }, 'sandboxes without isolation: their commands can do what this process can');
    return;
  }
  throw new StartFailure(
    `gateway.config.yml: offerings without isolation (${names}) would be open to everybody who reaches ${hostname}: install ` +
      'bubblewrap, disable them, listen on 127.0.0.1, or set plugins.sandbox.allowUnisolated: true in system.config.yml.',
  );
}
