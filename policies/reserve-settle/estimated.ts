import { Counter } from 'prom-client';
import { metrics } from '../../core/metrics';

/** Answers that were charged by the gateway's own count. A rise is an alarm: an upstream or an adapter counts wrongly. */
export const estimatedUsage = new Counter({
  name: 'tollgate_usage_estimated_total',
  help: 'Answers whose usage was missing or impossible and was estimated instead, by upstream.',
  labelNames: ['upstream'],
  registers: [metrics],
});
