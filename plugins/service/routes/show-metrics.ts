import type { Route } from '../../../core/api/route';
import { shape } from '../../../core/http/shape';
import { metrics, showMetrics } from '../../../core/metrics';

export function showMetricsRoute(): Route {
  return {
    listener: 'admin',
    method: 'GET',
    path: '/metrics',
    inWorkers: true,
    summary: "What the process counts and measures, in Prometheus' text format.",
    answers: { 200: { description: 'The metrics.', schema: shape.text, mediaType: 'text/plain' } },
    handle: async (_visit, _request, response) => {
      response.writeHead(200, { 'content-type': metrics.contentType });
      response.end(await showMetrics());
    },
  };
}
