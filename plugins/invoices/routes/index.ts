import type { Route } from '../../../core/api/route';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { compareInvoiceRoute } from './compare-invoice';
import { fetchInvoiceRoute } from './fetch-invoice';

export function invoiceRoutes(gateway: PluginGateway): readonly Route[] {
  return [fetchInvoiceRoute(gateway), compareInvoiceRoute(gateway)];
}
