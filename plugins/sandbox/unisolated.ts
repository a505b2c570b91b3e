import { ConfigurationError } from '../../core/configuration/yaml-file';
import { saidPublicUrl } from '../../core/http/public-url';
import { StartFailure } from '../../core/start-failure';
import { reachedFromElsewhere } from './reach';
import type { SandboxService } from './service';

/**
 * Warns of sandboxes without isolation, because their commands can do what this process can. If other machines reach the gateway,
 * it refuses to start, and later rejects every configuration that offers such sandboxes.
 * @throws StartFailure
 */
export function refuseUnisolated(service: SandboxService, isAllowed: boolean): void {
  const { gateway, log } = service;
  // The listener is the one from the start, because changing it needs a restart.
  const { hostname } = gateway.configuration.gateway.http;
  const exposure = { hostname, publicUrl: saidPublicUrl(), proxies: gateway.proxies.count };
  const reach = isAllowed ? undefined : reachedFromElsewhere(exposure);
  const names = unisolated(service, service.offerings());
  if (names !== '' && reach !== undefined) throw new StartFailure(`gateway.config.yml: ${refusal(names, reach)}`);
  warn(names);
  gateway.liveConfiguration.take((next) => {
    const nextNames = unisolated(
      service,
      service.offeringsOf((name) => next.sections.get(name)),
    );
    if (nextNames !== '' && reach !== undefined) {
      const message = refusal(nextNames, reach);
      throw new ConfigurationError([{ file: 'gateway.config.yml', line: undefined, column: undefined, message }]);
    }
    return () => warn(nextNames);
  });

  function warn(offerings: string): void {
    if (offerings !== '')
      log.warn({ offerings }, 'sandboxes run without isolation: their commands have all rights of this process');
  }
}

function unisolated({ drivers }: SandboxService, offered: ReturnType<SandboxService['offerings']>): string {
  return offered
    .filter(
      ({ offering }) =>
        offering.status === 'AVAILABLE' && drivers.get(offering.supplier)?.capabilities.isolation === 'none',
    )
    .map(({ offering }) => offering.name)
    .join(', ');
}

function refusal(names: string, reach: string): string {
  return (
    `offerings without isolation (${names}) would be open to others, because of ${reach}. Disable them, serve this machine ` +
    'alone, or set plugins.sandbox.allowUnisolated: true in system.config.yml. The log says why a supplier is not isolated.'
  );
}
