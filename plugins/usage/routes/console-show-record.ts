import type { Route } from '../../../core/api/route';
import { MORE_PRICE_FIELDS, PRICE_FIELDS, showPrice } from '../../../core/api/show-price';
import type { UsageRecordRow } from '../../../core/catalog/usage-fields';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { sendJson } from '../../../core/http/http';
import { object, objectWith, orNull, shape } from '../../../core/http/shape';
import { type Parts, requireRecord } from '../query';
import { CONSOLE_RECORD_FIELDS, toConsoleRecord } from '../record';

const PRICED_RECORD = object({
  ...CONSOLE_RECORD_FIELDS,
  price: orNull(objectWith({ ...PRICE_FIELDS, isCurrent: shape.yes }, MORE_PRICE_FIELDS)),
});

export function consoleShowRecordRoute(gateway: Parts & Pick<PluginGateway, 'configRevision'>): Route {
  return {
    listener: 'public',
    auth: 'session',
    method: 'GET',
    path: '/console/api/usage/{requestId}',
    summary: 'One usage record with its route, and what a million tokens cost there.',
    answers: { 200: { description: 'The record.', schema: PRICED_RECORD } },
    handle: async ({ accountId, params }, _request, response) => {
      const row = await requireRecord(gateway.database, params['requestId'], accountId);
      sendJson(response, 200, { ...toConsoleRecord(row), price: priceOf(gateway, row) });
    },
  };
}

/**
 * Returns the current token prices of the record's upstream; null if it is no longer configured. The configuration may have
 * changed since the call.
 */
function priceOf({ catalog, configRevision }: Pick<PluginGateway, 'catalog' | 'configRevision'>, row: UsageRecordRow) {
  const model = catalog.models.find(({ name }) => name === row.model);
  const entry = model?.entries.find(({ upstream }) => upstream.name === row.upstream);
  if (entry === undefined) return null;
  return { ...showPrice(entry.model.price), isCurrent: row.config_revision === configRevision };
}
