import { Registry } from 'prom-client';
import type { Route } from '../../../core/api/route';
import { shape } from '../../../core/http/shape';
import { showMetrics } from '../../../core/metrics';

export function showMetricsRoute(): Route {
  return {
    listener: 'admin',
    role: 'metrics',
    method: 'GET',
    path: '/metrics',
    inWorkers: true,
    isAskedOften: true,
    summary: "The metrics of the process in Prometheus' text format, or in OpenMetrics if `Accept` asks for it.",
    answers: { 200: { description: 'The metrics.', schema: shape.text, mediaType: 'text/plain' } },
    handle: async (_visit, { headers: { accept } }, response) => {
      // A scraper that reads OpenMetrics prefers it, so naming it is enough.
      const isOpenMetrics = accept?.includes('application/openmetrics-text') === true;
      const format = isOpenMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
      const text = await showMetrics(format);
      response.writeHead(200, { 'content-type': format });
      response.end(text);
    },
  };
}
