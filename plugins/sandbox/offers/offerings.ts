import type { SupplierDriver } from '../suppliers/supplier';
import { type OfferedInstance, type OfferingsSection, readOffering } from './offering';

/** Returns the offerings of a configuration. One that is disabled, or whose supplier is not open, is shown as unavailable. */
export function readOfferings(
  section: OfferingsSection | undefined,
  drivers: ReadonlyMap<string, SupplierDriver>,
  holdSeconds: number,
): readonly OfferedInstance[] {
  return Object.entries(section ?? {}).map(([name, settings]) => {
    const driver = drivers.get(settings.supplier);
    return readOffering(name, settings, {
      isOpen: driver !== undefined,
      isolation: driver?.capabilities.isolation ?? 'none',
      holdSeconds,
    });
  });
}
