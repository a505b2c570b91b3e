import type { Gateway } from '../../core/gateway';
import type { SupplierDriver } from '../../core/supplier';
import { type OfferedInstance, type OfferingsSection, readOffering } from './offering';

/** The offerings of the configuration in force. One whose supplier is not open, or that is not enabled, is shown as unavailable. */
export function offeredNow(
  gateway: Pick<Gateway, 'section'>,
  drivers: ReadonlyMap<string, SupplierDriver>,
  holdSeconds: number,
): readonly OfferedInstance[] {
  const section = gateway.section<OfferingsSection>('offerings') ?? {};
  return Object.entries(section).map(([name, settings]) => {
    const driver = drivers.get(settings.supplier);
    return readOffering(name, settings, {
      isOpen: driver !== undefined,
      isolation: driver?.capabilities.isolation ?? 'none',
      holdSeconds,
    });
  });
}
