import { Counter } from 'prom-client';
import { metrics } from '../../core/metrics';

/** Answers that were charged by what the gateway counted. Its growth is an alarm: an upstream or adapter counts wrongly. */
export const estimatedUsage = new Counter({
  name: 'tollgate_usage_estimated_total',
  help: 'Answers whose usage was missing or impossible and was estimated instead, by upstream.',
  labelNames: ['upstream'],
  registers: [metrics],
});
