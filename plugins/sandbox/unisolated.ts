import { StartFailure } from '../../core/start-failure';
import { ConfigurationError } from '../../core/yaml-file';
import type { SandboxService } from './service';

const LOOPBACK = /^(localhost|127(\.\d+){3}|::1|\[::1\])$/i;

/**
 * Commands of sandboxes without isolation can do what this process can: that is for whoever sits at this machine, who is told.
 * Where others can reach the gateway the start is refused, and later every configuration that offers one.
 * @throws StartFailure
 */
export function refuseUnisolated(service: SandboxService, isAllowed: boolean): void {
  const { gateway, log } = service;
  // The listener is that of the start: another one needs a restart.
  const { hostname } = gateway.configuration.gateway.http;
  const isOpen = !isAllowed && !LOOPBACK.test(hostname);
  const names = unisolated(service, service.offerings());
  if (names !== '' && isOpen) throw new StartFailure(`gateway.config.yml: ${refusal(names, hostname)}`);
  warn(names);
  gateway.liveConfiguration.take((next) => {
    const nextNames = unisolated(
      service,
      service.offeringsOf((name) => next.sections.get(name)),
    );
    if (nextNames !== '' && isOpen) {
      const message = refusal(nextNames, hostname);
      throw new ConfigurationError([{ file: 'gateway.config.yml', line: undefined, column: undefined, message }]);
    }
    return () => warn(nextNames);
  });

  function warn(offerings: string): void {
    if (offerings !== '')
      log.warn({ offerings }, 'sandboxes without isolation: their commands can do what this process can');
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

function refusal(names: string, hostname: string): string {
  return (
    `offerings without isolation (${names}) would be open to everybody who reaches ${hostname}: install bubblewrap, disable ` +
    'them, listen on 127.0.0.1, or set plugins.sandbox.allowUnisolated: true in system.config.yml.'
  );
}
