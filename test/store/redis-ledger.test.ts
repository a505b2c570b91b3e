import { pino } from 'pino';
import { RedisLedger } from '../../core/ledger/redis-ledger';
import { checkRedis, connectRedis } from '../../core/redis';
import { emptyRedis } from '../support/shared';
import { ledgerSuite } from './ledger-suite';

ledgerSuite('in Redis', async () => {
  const redis = connectRedis(await emptyRedis(), pino({ enabled: false }));
  await checkRedis(redis);
  return new RedisLedger({ redis });
});
