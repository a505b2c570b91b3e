import { FEED, FEED_READERS, feedRequestOf } from '../../../core/api/event-fields';
import { adminRoute } from '../../../core/api/json-routes';
import type { Route } from '../../../core/api/route';
import { listOperatorEvents } from '../../../core/events/feed';
import type { PluginGateway } from '../../../core/gateway/plugin-gateway';
import { readUuid } from '../../../core/http/query';

export function eventRoutes({ database }: PluginGateway): readonly Route[] {
  return [
    adminRoute('GET /admin/v1/events', {
      role: 'read',
      summary: 'The events of operators and of all accounts, oldest first; `account`: only those of an account.',
      query: { ...FEED_READERS, account: readUuid },
      answers: FEED,
      handle: ({ filters }) => listOperatorEvents(database, filters.account, feedRequestOf(filters)),
    }),
  ];
}
