import { BlockList, isIP } from 'node:net';
import type { Gateway } from '../../core/gateway';
import { StartFailure } from '../../core/start-failure';
import type { SupplierDriver } from '../../core/supplier';
import type { OfferingsSection } from './offering';

/**
 * Offerings with nothing between a sandbox and this machine are for whoever sits at it: they are said plainly, and refused
 * where others can reach the gateway. @throws StartFailure
 */
export function guardUnisolated(
  gateway: Pick<Gateway, 'section' | 'configuration' | 'log'>,
  drivers: ReadonlyMap<string, SupplierDriver>,
  isAllowed: (supplier: string) => boolean,
): void {
  const { hostname } = gateway.configuration.gateway.http;
  for (const [name, { supplier, enabled }] of Object.entries(gateway.section<OfferingsSection>('offerings') ?? {})) {
    if (!enabled || drivers.get(supplier)?.capabilities.isolation !== 'none') continue;
    if (!isLoopback(hostname) && !isAllowed(supplier)) throw new StartFailure(refusal(name, supplier, hostname));
    gateway.log.warn(
      { offering: name, supplier },
      'sandboxes of this offering are no security boundary: their commands can do what this process can',
    );
  }
}

function refusal(offering: string, supplier: string, hostname: string): string {
  return `gateway.config.yml: offerings.${offering}: its supplier "${supplier}" puts nothing between a sandbox and this machine, and the gateway listens on ${hostname}, where others can reach it.
Install bubblewrap, or disable the offering, or listen on 127.0.0.1; or accept it with plugins.sandbox.suppliers.${supplier}.allowUnisolated: true in system.config.yml.`;
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function isLoopback(hostname: string): boolean {
  const family = isIP(hostname);
  return family === 0 ? hostname === 'localhost' : loopback.check(hostname, family === 6 ? 'ipv6' : 'ipv4');
}
